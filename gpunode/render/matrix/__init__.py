"""The fleet on one page: hosts against what they have, what differs from most of their kind marked (HTML, one file)."""
