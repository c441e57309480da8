"""A run that may change hosts: its plans applied, what is kept of it, and its lines as they come."""
