"""docker: daemon.json."""
