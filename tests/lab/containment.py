"""The lab enters only hosts that it made itself, and runs only where nothing but its hosts is in reach.

Namespaces alone do not keep it in: when the lab runs in a chroot, the root of a host's mount namespace is the machine
around the chroot, and setns(2) lands there. So a host is entered with its root, through open files that were proven.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ENTERED = ("mnt", "pid", "net", "uts", "ipc", "cgroup")
OPTIONS = {"mnt": "mount"}  # nsenter's word where it is not the kernel's
APART = ("mnt", "pid", "net")  # what a host never shares with the lab, nor the lab with the machine
OUTER = "GPUNODE_LAB_OUTER"  # run.sh: the machine's own namespaces, as readlink(1) says them
MARKER = ".gpunode-lab-host"  # in the root of each host: a random word that the lab wrote before the boot
# A new network namespace may get these from loaded modules; none has another end. vb-: the hosts' ports.
HARMLESS = ("lo", "lab0", "vb-", "tunl0", "sit0", "gre", "erspan", "ip6", "ip_vti0")
LINKS = 40  # as the kernel: more than these is a loop (path_resolution(7))
Identity = tuple[int, int]  # st_dev, st_ino


class NotOurs(RuntimeError):
    """What would be entered is not proven to be a host of this lab; nothing was entered."""


@dataclass(frozen=True)
class Made:
    """What the lab knows of a host because it made it."""

    parent: int  # pid of its nspawn, which this process started and has not reaped
    started: str | None  # when its init started (proc_pid_stat(5), field 22); None before it was first seen
    root: Identity  # of the overlay as the lab mounted it
    token: str


@dataclass(frozen=True)
class Seen:
    """What the kernel says of the process that would be entered."""

    parent: int
    started: str
    namespaces: Mapping[str, Identity]
    root: Identity
    token: str | None  # None: no marker in its root


def why_not_ours(seen: Seen, made: Made, elsewhere: tuple[Mapping[str, Identity], ...]) -> str | None:
    """Why the process is not proven to be the host's init, or None; elsewhere: namespaces that no host has."""
    if seen.parent != made.parent:
        return f"its parent is process {seen.parent}, not the {made.parent} that the lab started"
    if made.started is not None and seen.started != made.started:
        return f"it started at {seen.started}, the host's init at {made.started}"
    for kind in APART:
        if any(seen.namespaces[kind] == others.get(kind) for others in elsewhere):
            return f"its {kind} namespace is not its own"
    if seen.root != made.root:
        return f"its root is {seen.root}, the lab mounted {made.root}"
    if seen.token != made.token:
        return f"its root has {'no' if seen.token is None else 'another'} {MARKER}"
    return None


@contextlib.contextmanager
def door(pid: int, made: Made) -> Iterator[tuple[list[str], Seen]]:
    """nsenter's argv into the host whose init is `pid`, and what was seen; raises NotOurs.

    What was proven is what is entered: all is opened below one open /proc/PID, which fails once the process is gone,
    even where its pid has a new owner; and nsenter is handed these very files.
    """
    with contextlib.ExitStack() as stack:

        def opened(path: str, flags: int, below: int | None = None) -> int:
            descriptor = os.open(path, flags | os.O_CLOEXEC, dir_fd=below)
            stack.callback(os.close, descriptor)
            return descriptor

        try:
            process = opened(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY)
            files = {kind: opened(f"ns/{kind}", os.O_RDONLY, process) for kind in ENTERED}
            root = opened("root", os.O_RDONLY | os.O_DIRECTORY, process)
            seen = _seen(process, files, root)
        except OSError as error:
            raise NotOurs(f"process {pid} is not entered: {error}") from error
        if reason := why_not_ours(seen, made, (namespaces("self"), namespaces("1"))):
            raise NotOurs(f"process {pid} is not entered: {reason}")
        at = f"/proc/{os.getpid()}/fd"
        entries = [f"--{OPTIONS.get(kind, kind)}={at}/{number}" for kind, number in files.items()]
        yield ["nsenter", *entries, f"--root={at}/{root}", f"--wd={at}/{root}", "--"], seen


def namespaces(process: str) -> dict[str, Identity]:
    """Of /proc/PROCESS; without those that this process may not see."""
    found = {}
    for kind in APART:
        with contextlib.suppress(OSError):
            found[kind] = _identity(os.stat(f"/proc/{process}/ns/{kind}"))
    return found


def _seen(process: int, files: Mapping[str, int], root: int) -> Seen:
    fields = _text("stat", process).rpartition(")")[2].split()  # after pid and comm: state is 0, ppid 1, starttime 19
    try:
        token: str | None = _text(MARKER, root, os.O_NOFOLLOW)
    except OSError:
        token = None
    identities = {kind: _identity(os.fstat(number)) for kind, number in files.items()}
    return Seen(int(fields[1]), fields[19], identities, _identity(os.fstat(root)), token)


def _text(path: str, below: int, flags: int = 0) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=below)
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def mounted_root(root: Path) -> Identity:
    """Of what is mounted there; raises NotOurs where that is nothing."""
    if not os.path.ismount(root):
        raise NotOurs(f"nothing is mounted on {root}")
    return _identity(root.stat())


# The place where the lab itself runs


def why_exposed() -> str | None:
    """Why something besides the lab's hosts is in reach of this process, or None."""
    own = {os.readlink(f"/proc/self/ns/{kind}") for kind in APART}
    with_us = os.readlink("/proc/self") == str(os.getpid())
    names = [name for _, name in socket.if_nameindex()]
    return exposure(own, os.environ.get(OUTER, ""), names, proc_is_ours=with_us)


def exposure(own: set[str], outer: str, interfaces: list[str], *, proc_is_ours: bool) -> str | None:
    """`own` and `outer` are words such as "mnt:[4026531841]"; interfaces are names."""
    start = "start it with tests/lab/run.sh"
    if sorted(word.partition(":")[0] for word in outer.split()) != sorted(APART):
        return f"not in namespaces of its own; {start}"
    if shared := sorted(own & set(outer.split())):
        return f"in the machine's own {' '.join(shared)}; {start}"
    if not proc_is_ours:
        return f"/proc shows the processes of another pid namespace; {start}"
    if reaching := [name for name in interfaces if not name.startswith(HARMLESS)]:
        return f"in a network namespace with {', '.join(reaching)}; {start}"
    return None


# Paths of a host, from outside


def inside(root: Path, path: str, *, follow: bool = False) -> Path:
    """Where the host's `path` lies, its links followed as the host would, never out of `root`.

    The last part is followed only if asked to: what is written may take a link's place. Raises OSError on a loop.
    """
    left = [part for part in path.split("/") if part not in ("", ".")]
    here, links = root, 0
    while left:
        part = left.pop(0)
        if part == "..":
            here = here if here == root else here.parent
            continue
        here /= part
        if not here.is_symlink() or (not left and not follow):
            continue
        links += 1
        if links > LINKS:
            raise OSError(f"{path}: more than {LINKS} links")
        target = os.readlink(here)
        left = [part for part in target.split("/") if part not in ("", ".")] + left
        here = root if target.startswith("/") else here.parent
    return here
