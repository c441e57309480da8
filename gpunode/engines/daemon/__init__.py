"""What is asked of a running daemon, and how it is restarted."""
