"""What the controller keeps of a run over hosts, and what is made of it later: a list, a retry, a merge."""
