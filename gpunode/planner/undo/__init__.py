"""What gpunode changed on a host, undone."""
