"""The same work, as others do it."""
