"""How gpunode starts gpunode: the words for a unit of systemd, and whether they still lead to it after a boot."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from zipfile import is_zipfile

from gpunode import resources
from gpunode.advice import named

# Emptied at a boot, or in memory: /tmp by tmp.mount or tmpfiles.d(5) on most distributions. /var/tmp is not.
_EMPTIED = ("/tmp", "/run", "/dev/shm")
_IN_MEMORY = ("tmpfs", "ramfs")
_HOMES = ("/home", "/root", "/var/home", "/var/roothome")  # the latter: of image-based systems
_ENFORCE = "/sys/fs/selinux/enforce"


def own_command() -> tuple[str, ...]:
    """How gpunode was started, in words that work from any directory. `-m` alone would miss a launcher that brings its
    own import path, or a zipapp; an argv[0] that is not a program is the package's __main__.py.

    One file is started by the Python that runs it now: its first line may name one that is too old.
    """
    if zipapp := resources.archive():
        return (sys.executable, zipapp)
    typed = os.path.abspath(sys.argv[0])
    if is_zipfile(typed):  # the controller's file unpacks itself, and what runs is not in it
        return (sys.executable, typed)
    launcher = os.path.isfile(typed) and os.access(typed, os.X_OK) and not typed.endswith(".py")
    return (typed,) if launcher else (sys.executable, "-m", "gpunode")


def lost_at_boot(argv: Sequence[str], mounts: str | None = None) -> str:
    """Why these words lead to no gpunode after a boot; "": they do.

    `mounts`: as /proc/self/mountinfo has them, proc_pid_mountinfo(5); None: this machine's.
    """
    places = _in_memory(
        Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape") if mounts is None else mounts
    )
    for path in (word for word in argv if word.startswith("/")):
        for place in (*_EMPTIED, *places):
            if PurePosixPath(os.path.realpath(path)).is_relative_to(place):
                return (
                    f"gpunode runs from {named(path)}, and a boot may leave nothing in {named(place)}; "
                    "from a place that stays (/opt) it would go on by itself"
                )
    return ""


def barred_by_selinux(argv: Sequence[str], enforcing: bool | None = None) -> str:
    """Why systemd may not start these words; "": it may.

    Its domain, init_t, executes no file of a home directory (user_home_t, admin_home_t): a unit fails with 203/EXEC
    (systemd.exec(5)). A Python of the system's may read one there. `enforcing`: None: as this machine is.
    """
    if enforcing is None:
        enforcing = os.path.exists(_ENFORCE) and Path(_ENFORCE).read_text("ascii").strip() == "1"
    program = argv[0]
    if not enforcing or not any(_is_below(path, _HOMES) for path in (program, os.path.realpath(program))):
        return ""
    return (
        f"SELinux is enforcing, and lets systemd start nothing from a home directory, where {named(program)} is; "
        "from its package, or an environment in /opt, it would go on by itself"
    )


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(place) for place in places)


def _in_memory(mounts: str) -> tuple[str, ...]:
    """Where file systems in memory are mounted. Of a root in memory (a live system) nothing stays either.

    36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    """
    found = []
    for line in mounts.splitlines():
        mount, _, source = line.partition(" - ")
        if source.partition(" ")[0] in _IN_MEMORY and len(fields := mount.split(" ")) > 4:
            found.append(fields[4].replace(r"\040", " "))
    return tuple(found)
