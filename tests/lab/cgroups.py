"""A cgroup for each host: two nspawns in one cgroup would share its `payload`, and cgroup.kill is the power switch."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# cgroup v2, on its own or beside v1 controllers ("hybrid"); nspawn also makes directories in v1's name=systemd tree.
HIERARCHIES = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/systemd"))
PREFIX = "gpunode-lab"
KILL_LIMIT_S = 10.0


def unified() -> Path | None:
    return next((path for path in HIERARCHIES[:2] if (path / "cgroup.procs").exists()), None)


def cgroup_path(run: str, host: str) -> Path:
    root = unified()
    if root is None:
        raise RuntimeError("no cgroup v2 hierarchy is mounted")
    return root / f"{PREFIX}-{run}-{host}"


def joining(host: Path) -> list[str]:
    """In front of a command: it runs in the cgroup of the host's own init, once there is one.

    Where cgroup2 is mounted with nsdelegate, as systemd mounts it, no process of the host's may be moved into a cgroup
    from one outside of the host's cgroup namespace (cgroups(7)): podman's and docker's containers would not start.
    """
    enter = '[ ! -e "$0" ] || echo 0 >"$0"; exec "$@"'
    return ["sh", "-c", enter, str(host / "payload" / "init.scope" / "cgroup.procs")]


def kill_cgroup(path: Path) -> None:
    """SIGKILL to every process in it at once, and wait until they are gone."""
    with contextlib.suppress(FileNotFoundError):
        (path / "cgroup.kill").write_text("1")
        deadline = time.monotonic() + KILL_LIMIT_S
        while "populated 1" in (path / "cgroup.events").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)


def remove_cgroup(path: Path) -> None:
    """Remove the host's directories in every hierarchy; they must be empty of processes."""
    for root in HIERARCHIES:
        for directory, _, _ in os.walk(root / path.name, topdown=False):
            _remove_directory(Path(directory))


def remove_cgroups(run: str) -> None:
    """Kill and remove every host of one run."""
    root = unified()
    for path in root.glob(f"{PREFIX}-{run}-*") if root else ():
        kill_cgroup(path)
        remove_cgroup(path)


def _remove_directory(path: Path) -> None:
    for _ in range(100):  # the kernel frees it a moment after its last process
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
