"""--recorded of a directory with several recorded hosts in it: a fleet, each of them read when its turn comes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.fleet.inventory.words import MOST_HOSTS
from gpunode.render.clean import clean_line
from gpunode.transport.base import Completed
from gpunode.transport.recorded import Recorded

STREAM = "facts.txt"  # in a recorded host's own directory
SAVED = ".txt"


def recorded_fleet(path: Path) -> tuple[Host, ...]:
    """The hosts of the recordings in a directory, by name; () where it is one recorded host, or holds none.

    A recording is a directory with facts.txt, as in examples/hosts, or a file NAME.txt, as `detect --record` may have
    saved it. One that turns out to be broken, or is a link to nothing, is that host's fault alone. Raises UsageError
    for too many, for two of one name, and where not all of it can be looked at.
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


def recorded_name(name: str) -> str:
    """What the host of a recording is called: one line, as every name of --ssh and of an inventory is. A file's name
    may have several, of which each would look like one of gpunode's.
    """
    return clean_line(name)


def _found(path: Path) -> dict[str, Path]:
    """Name -> recording, at most one more than is allowed. Raises OSError; UsageError for two of one name."""
    found: dict[str, Path] = {}
    with os.scandir(path) as entries:
        for entry in entries:
            recording, name = Path(entry.path), entry.name
            if not _is_there(recording / STREAM):
                if not (name.endswith(SAVED) and _is_there(recording)):
                    continue
                name = name.removesuffix(SAVED)
            name = recorded_name(name)
            if name in found:  # one of them would stand for both
                first, second = sorted((found[name].name, entry.name))
                raise UsageError(
                    f"--recorded {path} has {name!r} twice",
                    evidence=f"{first!r} and {second!r} are recordings of one name",
                    remedy="give one of them another name, or take it out",
                )
            found[name] = recording
            if len(found) > MOST_HOSTS:
                break
    return found


def _is_there(path: Path) -> bool:
    """Whether a file is there, or a link to nothing: a host whose recording is lost is one more fault, not one host
    less. Raises OSError where it cannot be told.
    """
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return path.is_symlink()


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
