"""Kubernetes distributions that embed a containerd: k3s, rke2, k0s, microk8s; and which engine runs the pods."""
