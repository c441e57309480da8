"""Why the kernel refuses even root: the i and a attributes that chattr(1) sets."""

from __future__ import annotations

import array
import fcntl
import os

from gpunode.advice import typed

FS_IOC_GETFLAGS = 0x80086601  # linux/fs.h, where a long has 8 bytes
LETTERS = {0x10: "i", 0x20: "a"}  # FS_IMMUTABLE_FL, FS_APPEND_FL
SAYS = {"i": "immutable", "a": "append only"}


def not_permitted(resolved: str) -> str:
    """What to do about EPERM for this path. More rights do not help against an attribute, nor root."""
    directory = os.path.dirname(resolved) or "."
    for path in (resolved, directory):
        if letter := attribute(path):
            look, release = typed("lsattr", "-d", path), typed("chattr", f"-{letter}", path)
            return f"{look} shows {letter} ({SAYS[letter]}): find out who set it, {release}, then run gpunode again"
    if os.geteuid() != 0:
        return "run gpunode as the file's owner, or as root (sudo): a copy of yours would change its owner"
    return f"{typed('lsattr', '-d', resolved, directory)} shows i or a where chattr -i or -a is needed first"


def attribute(path: str) -> str | None:
    """ "i" or "a"; None where there is neither, or the file system has no attributes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    flags = array.array("L", [0])
    try:
        fcntl.ioctl(handle, FS_IOC_GETFLAGS, flags, True)
    except OSError:
        return None
    finally:
        os.close(handle)
    return next((letter for bit, letter in LETTERS.items() if flags[0] & bit), None)
