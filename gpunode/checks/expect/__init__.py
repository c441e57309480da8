"""What the user expects of the host, against what is there: no opinion of gpunode's. How many GPUs is in pci.py."""
