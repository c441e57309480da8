"""A node of Kubernetes, cordoned and drained with kubectl: pods are evicted, so that disruption budgets hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gpunode.facts.node import is_node_name
from gpunode.fleet.rollout.drain import Closed, NodeIdentity, Note, busy, last_words, run_tool
from gpunode.values import dataclass

_ENDS_S = 30.0  # kubectl keeps its own limit; this much later it is ended
# One line a value: what is absent is an empty line.
_SHOWN = r"jsonpath={.spec.unschedulable}{'\n'}{.status.nodeInfo.bootID}{'\n'}"


class _Node(NamedTuple):
    name: str
    cordoned: bool


@dataclass(frozen=True)
class Kubernetes:
    """One cluster, as one kubeconfig reaches it."""

    kubectl: str  # its path
    kubeconfig: Path  # absolute: programs are started in /
    timeout_s: int
    delete_emptydir: bool = False  # pods that keep data in an emptyDir are evicted too, and lose it
    name: str = "Kubernetes"

    def close(self, node: NodeIdentity, note: Note) -> Closed:
        """See Scheduler.close."""
        found = self._node(node)
        reopen = self._argv("uncordon", found.name)
        if found.cordoned:
            return Closed(found.name, reopen, before=True)
        note(reopen)
        if (done := run_tool(self._argv("cordon", found.name))).code != 0:
            # The server may have been told, and its answer lost.
            why = busy(node, f"its node {found.name} cannot be cordoned", f"kubectl cordon: {last_words(done)}")
            return Closed(found.name, reopen, failed=why)
        return Closed(found.name, reopen)

    def clear(self, node: NodeIdentity, closed: Closed, stop: Callable[[], bool]) -> None:
        """See Scheduler.clear."""
        data = ("--delete-emptydir-data",) if self.delete_emptydir else ()
        argv = self._argv("drain", closed.name, "--ignore-daemonsets", f"--timeout={self.timeout_s}s", *data)
        done = run_tool(argv, self.timeout_s + _ENDS_S, stop, last=True)
        if done.code != 0:
            raise busy(node, f"its node {closed.name} cannot be drained", f"kubectl drain: {last_words(done)}")

    def reopen(self, command: tuple[str, ...]) -> str:
        """See Scheduler.reopen."""
        done = run_tool(command)
        return "" if done.code == 0 else f"kubectl uncordon: {last_words(done)}"

    def _node(self, node: NodeIdentity) -> _Node:
        """The host's node. Another cluster may have one of that name: its machine has another boot id."""
        name = node.node_name or node.hostname.lower()
        if not is_node_name(name):
            raise busy(node, "its name is no name of a node", f"it calls itself {name[:80]!r}")
        done = run_tool(self._argv("get", "node", name, "-o", _SHOWN))
        if done.code != 0:
            raise busy(node, f"{self.kubeconfig} leads to no node {name}", f"kubectl get node: {last_words(done)}")
        cordoned, boot_id, *_ = (*done.out.decode("utf-8", "replace").split("\n"), "", "")
        if not node.boot_id or boot_id.strip() != node.boot_id:
            raise busy(
                node,
                f"node {name} of this cluster is not known to be this host",
                f"its boot id is {boot_id[:80]!r}, that of the host {node.boot_id or 'is not known'}",
            )
        return _Node(name, cordoned.strip() == "true")

    def _argv(self, *words: str) -> tuple[str, ...]:
        return (self.kubectl, "--kubeconfig", str(self.kubeconfig), *words)
