"""Files of this machine, read and written without a host."""
