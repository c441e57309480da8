"""The hosts of a run: words of --ssh, or a file of --inventory, and which of them --limit and its kin choose."""

from gpunode.fleet.inventory.ssh_words import parse_ssh_targets

__all__ = ["parse_ssh_targets"]
