"""Where the lab keeps things: a cache that runs share, and one directory per run.

$GPUNODE_LAB/base/      images (images/build.sh)
$GPUNODE_LAB/trust/     ssh key, repository key, certificate authority: made once
$GPUNODE_LAB/repos/     signed stub repositories, one directory per hash of their recipe
$GPUNODE_LAB/run/ID/    hosts of one test run and its copy of trust/; its process holds a lock on `owner`, which tells
                        others that it is no leftover
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from .cgroups import remove_cgroups
from .shell import attempt

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_owned: dict[Path, TextIO] = {}  # open as long as this process has the run


def cache() -> Path:
    return Path(os.environ.get("GPUNODE_LAB", "/var/cache/gpunode-lab"))


def run_id() -> str:
    """Five base-36 digits: an interface's name has few (machine.py). No pid: each run counts its own."""
    return "".join(secrets.choice(DIGITS) for _ in range(5))


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time makes the shared things."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def claim_run_directory() -> Path:
    """This process's directory under run/, empty and marked as ours."""
    directory = cache() / "run" / run_id()
    with locked("run"):  # nobody sweeps what has no owner yet
        directory.mkdir(parents=True)
        owner = (directory / "owner").open("w")
        fcntl.flock(owner, fcntl.LOCK_EX)
        owner.write(_identity(directory))
        owner.flush()
    _owned[directory] = owner
    return directory


def sweep() -> list[str]:
    """Remove what interrupted runs left behind; runs whose process is alive are not touched."""
    swept = []
    with locked("run"):
        for directory in sorted((cache() / "run").glob("*")):
            if not _is_alive(directory):
                _remove_run(directory)
                swept.append(directory.name)
    return swept


def release_run_directory(directory: Path) -> None:
    _remove_run(directory)
    if owner := _owned.pop(directory, None):
        owner.close()


def _remove_run(directory: Path) -> None:
    if _owner(directory) == _identity(directory):  # else a copy of another machine's, whose hosts may well run
        remove_cgroups(directory.name)
    for mount in _mounts_below(directory):
        attempt("umount", "-R", mount)
    if not _mounts_below(directory):  # never delete through a mount
        shutil.rmtree(directory, ignore_errors=True)


def _mounts_below(directory: Path) -> list[str]:
    """Mount points, innermost first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in reversed(points) if point.startswith(f"{directory}/")]


def _is_alive(directory: Path) -> bool:
    """A lock ends with the process that holds it, whatever pid namespace that one counts in."""
    try:
        with (directory / "owner").open() as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _owner(directory: Path) -> str:
    try:
        return (directory / "owner").read_text()
    except OSError:
        return ""


def _identity(directory: Path) -> str:
    """Of the directory itself: a copy of it has another."""
    status = directory.stat()
    return f"{status.st_dev}:{status.st_ino}"
