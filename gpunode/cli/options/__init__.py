"""The options that verbs share, and what they make of a spec."""
