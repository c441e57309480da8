"""What an upgrade of Kubernetes will change for this node's kubelet: one short function for each thing that can."""
