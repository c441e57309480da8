"""Work is moved away from a host before what disturbs it, and let back once the host is well.

Who schedules that work is told by its own program on this machine (kubernetes_node.py, slurm_node.py), in arguments
and never through a shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from gpunode.errors import HostBusy
from gpunode.model.facts import HostFacts
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.site_checks.program import Ended, run_program
from gpunode.values import dataclass

DEFAULT_TIMEOUT_S = 600
MOST_TIMEOUT_S = 7 * 24 * 3600  # Slurm's jobs may be long
COMMAND_S = 60.0  # for one that only asks or sets something
_LAST_LINES = 3


@dataclass(frozen=True)
class NodeIdentity:
    """A host as its scheduler may know it."""

    target: str  # as the user named it
    hostname: str
    node_name: str | None = None  # by which its kubelet asks for its node; None: not known
    boot_id: str | None = None  # of the kernel: the node of that name is this machine

    @staticmethod
    def of(host: HostFacts) -> NodeIdentity:
        return NodeIdentity(host.target, host.hostname, host.kubernetes.node_name, host.kernel.boot_id)


@dataclass(frozen=True)
class Closed:
    """A node to which no new work comes."""

    name: str  # by which its scheduler knows it
    reopen: tuple[str, ...]  # the command that lets work come again
    before: bool = False  # it was closed already, and nothing was done
    failed: HostBusy | None = None  # closing it failed, maybe after it was done: then it is only reopened


Note = Callable[[tuple[str, ...]], None]  # is told the command that lets work come again


class Scheduler(Protocol):
    """What gives work to hosts."""

    @property
    def name(self) -> str:
        """ "Kubernetes"."""
        ...

    def close(self, node: NodeIdentity, note: Note) -> Closed:
        """Let no new work come to it; `note` is told beforehand. Raises HostBusy, and has changed nothing then: what
        may have, is in `failed`.
        """
        ...

    def clear(self, node: NodeIdentity, closed: Closed, stop: Callable[[], bool]) -> None:
        """Move the work away that is there, or wait for its end.

        Raises HostBusy where that cannot be done in time, or `stop()` turned true.
        """
        ...

    def reopen(self, command: tuple[str, ...]) -> str:
        """Run what `close` answered. Why it failed, or ""."""
        ...


def run_tool(
    argv: tuple[str, ...], limit_s: float = COMMAND_S, stop: Callable[[], bool] = lambda: False, *, last: bool = False
) -> Ended:
    """kubectl or scontrol, with this user's environment: kubeconfigs name helpers that need it."""
    return run_program(argv, limit_s=limit_s, environment=os.environ, stop=stop, last_bytes=last)


def last_words(ended: Ended) -> str:
    """Why it failed: its last errors, each once, since kubectl repeats what a budget refuses; else its last lines."""
    text = (ended.err or ended.out).decode("utf-8", "replace")
    lines = list(dict.fromkeys(line.strip()[:200] for line in text.splitlines() if line.strip()))
    errors = [line for line in lines if "error" in line.lower()]
    said = " · ".join((errors or lines)[-_LAST_LINES:])
    how = ended.why or f"exit code {ended.code}"
    return f"{how}: {said}" if said else how


def busy(node: NodeIdentity, what: str, evidence: str) -> HostBusy:
    return HostBusy(
        f"{node.target}: {what}",
        evidence=evidence,
        remedy=Remedy(RepairAction.WAIT, "see to that, then run ", AGAIN, " again"),
    )
