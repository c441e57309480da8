"""A fleet on this machine: many addresses, one sshd behind them, and a wire that is as long as it is told to be."""
