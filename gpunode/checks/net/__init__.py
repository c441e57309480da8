"""Networks between GPU nodes: RDMA devices and what lets them reach the memory of a GPU."""
