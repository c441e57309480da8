"""Which verdicts count, and for how much: what a site chose, after every check has spoken."""
