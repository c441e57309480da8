"""What a cluster is told of its GPU nodes, as objects of its API: values in, mappings out. Asks no cluster."""
