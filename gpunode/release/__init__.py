"""What gpunode itself is made of, and how it gets to hosts and sites as one file."""
