"""--recorded of a directory with several recorded hosts in it: a fleet, each of them read when its turn comes."""

from __future__ import annotations

import os
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.fleet.inventory.words import MOST_HOSTS
from gpunode.transport.base import Completed
from gpunode.transport.recorded import Recorded

STREAM = "facts.txt"  # in a recorded host's own directory
SAVED = ".txt"


def recorded_fleet(path: Path) -> tuple[Host, ...]:
    """The hosts of the recordings in a directory, by name; () where it is one recorded host, or holds none.

    A recording is a directory with facts.txt, as in examples/hosts, or a file NAME.txt, as `detect --record` may have
    saved it. One that turns out to be broken is that host's fault alone. Raises UsageError for too many, and where
    not all of it can be looked at.
    """
    try:
        if not path.is_dir() or (path / STREAM).exists():
            return ()
        found = _found(path)
    except OSError as error:  # some of them would be a fleet that looks whole
        raise UsageError(
            f"--recorded {path} cannot be looked through",
            evidence=error.strerror or str(error),
            remedy="name a directory of yours",
        ) from error
    if len(found) > MOST_HOSTS:
        raise UsageError(
            f"--recorded {path} holds more recorded hosts than one run takes",
            evidence=f"one run takes {MOST_HOSTS}",
            remedy="divide them among directories",
        )
    return tuple(Host(_Saved(found[name], name), recorded=True) for name in sorted(found))


def _found(path: Path) -> dict[str, Path]:
    """Name -> recording, at most one more than is allowed. Raises OSError."""
    found: dict[str, Path] = {}
    with os.scandir(path) as entries:
        for entry in entries:
            if (Path(entry.path) / STREAM).is_file():
                found[entry.name] = Path(entry.path)
            elif entry.name.endswith(SAVED) and entry.is_file():
                found[entry.name.removesuffix(SAVED)] = Path(entry.path)
            if len(found) > MOST_HOSTS:
                break
    return found


class _Saved:
    """A recorded host whose stream is not in memory before it is asked for, nor after."""

    def __init__(self, path: Path, target: str) -> None:
        self._path = path
        self.target = target

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """As Recorded. Raises UsageError where the file is no recording."""
        return Recorded(load_recording(self._path), self.target).run(script, stdin=stdin, timeout_s=timeout_s)

    def reconnect(self) -> None:
        """There is no connection."""

    def close(self) -> None:
        """There is no connection."""
