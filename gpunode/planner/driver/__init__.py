"""The right driver for every GPU of a host: which branch, flavour and source, and why."""
