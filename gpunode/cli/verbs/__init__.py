"""The verbs that people type, one file each."""
