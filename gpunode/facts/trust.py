"""Which daemons are trusted: the controller's half of the one notion that shell/trust.sh keeps on the host.

A daemon of the host runs as uid 0, in the host's namespaces, from a program and directories that only root writes. The
probe lists those, and in addition only a user's own dockerd; what else is named like a daemon comes as `ignored`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.facts.processes import Process
from gpunode.model.facts import IgnoredProcess


def daemons_of_the_host(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Those that run as root. Only these are the host's engines and its kubelet."""
    return tuple(p for p in processes if p.uid is None)


def daemons_of_users(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Rootless dockerds; no other daemon of a user is an engine that gpunode supports."""
    return tuple(p for p in processes if p.uid is not None and p.comm == "dockerd")


def parse_ignored(text: str) -> tuple[IgnoredProcess, ...]:
    """`PID UID COMM WHY...`, twenty at most:

    4711 65534 containerd it belongs to uid 65534
    """
    rows = (line.split(None, 3) for line in text.splitlines())
    return tuple(IgnoredProcess(int(row[0]), row[2], int(row[1]), row[3]) for row in rows if len(row) == 4)
