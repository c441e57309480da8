"""What a command line needs before anything else is loaded: the page of all verbs, and the look at this machine."""
