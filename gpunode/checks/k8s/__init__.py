"""Can Kubernetes schedule the GPUs of this node, as far as the node itself tells?"""
