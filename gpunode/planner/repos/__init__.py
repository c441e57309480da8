"""Package repositories: which are right, which are set up, which are cleaned away."""
