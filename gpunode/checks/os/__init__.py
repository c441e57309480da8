"""The operating system around the GPUs: its packages, releases, disks, memory and clock."""
