"""What was done to a host, written there: entries, what an undo needs, and how old ones go."""
