"""A pod that was started on a node to show that it gets a GPU, and what became of it."""

from __future__ import annotations

from gpunode.values import dataclass


@dataclass(frozen=True)
class PodTrial:
    name: str  # "gpunode-verify-3f9a21"; in the namespace default
    phase: str = ""  # as its object had it last: "Succeeded", "Failed", "Pending"; "": it was not made
    says: str = ""  # why it was not made, or why it is in that phase
    log: tuple[str, ...] = ()  # its last lines
    left: str = ""  # why it may still be there; "": it is gone
    swept: tuple[str, ...] = ()  # pods of earlier tests on this node that had ended and were still there: deleted
    no_kubeconfig: bool = False  # nothing on the host may create pods
