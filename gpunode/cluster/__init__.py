"""The API server from here, through the official client, with a kubeconfig of this machine: no kubectl, no SSH."""
