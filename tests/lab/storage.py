"""Where the lab keeps things: a cache that runs share, and one directory per run.

$GPUNODE_LAB/base/      images (images/build.sh)
$GPUNODE_LAB/trust/     ssh key, repository key, certificate authority: made once
$GPUNODE_LAB/repos/     signed stub repositories, one directory per hash of their recipe
$GPUNODE_LAB/run/ID/    hosts of one test run; `owner` names the process, so others can tell a leftover
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from .cgroups import remove_cgroups
from .shell import attempt

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def cache() -> Path:
    return Path(os.environ.get("GPUNODE_LAB", "/var/cache/gpunode-lab"))


def run_id() -> str:
    """Short and unique among living processes: five base-36 digits hold every pid Linux gives out."""
    number, digits = os.getpid(), ""
    while number:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits


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
    if directory.exists():  # a dead run had our pid
        _remove_run(directory)
    directory.mkdir(parents=True)
    (directory / "owner").write_text(_identity(os.getpid()))
    return directory


def sweep() -> list[str]:
    """Remove what interrupted runs left behind; runs whose process is alive are not touched."""
    swept = []
    for directory in sorted((cache() / "run").glob("*")):
        if not _is_alive(directory):
            _remove_run(directory)
            swept.append(directory.name)
    return swept


def release_run_directory(directory: Path) -> None:
    _remove_run(directory)


def _remove_run(directory: Path) -> None:
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
    try:
        owner = (directory / "owner").read_text()
    except OSError:
        return False
    return owner == _identity(int(owner.split()[0]))


def _identity(pid: int) -> str:
    """pid and its start time: a pid alone may have been given to another process since."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{pid} {fields[19]}"  # starttime is field 22 of proc_pid_stat(5); pid and comm are cut off above
