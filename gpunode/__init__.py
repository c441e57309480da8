"""gpunode: turn a bare Linux host with NVIDIA GPUs into a node whose GPUs Docker and Kubernetes can schedule."""

__version__ = "0.1.0"
