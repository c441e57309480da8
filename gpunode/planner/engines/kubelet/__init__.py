"""The steps that prepare a node's kubelet for GPUs."""
