"""Packages that stand for NVIDIA's: the same names, files and exit codes, and nothing behind them. All named stubs."""
