"""The three standard streams, where whoever started us closed one of them or gave us one that takes nothing."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

# By descriptor. What nobody can read is an error when a result is to be printed, and none for a remark.
_STREAMS = (("stdin", "r", os.O_RDWR), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDWR))
_CANNOT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def fill_closed_streams() -> None:
    """/dev/null takes the place of each that is closed (`>&-`, `<&-`): an empty stdin, a stdout that cannot be written.

    Otherwise the next file or connection gets the number, and what is printed goes there.
    """
    for number, (name, mode, access) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, access)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            else:
                os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            stream = os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def why_unwritten(error: Exception) -> str | None:
    """Why stdout took not all of it, where `error` is about that. From then on it takes everything, and drops it.

    A failed write names no file, as a failed open does; files have messages of their own. Python flushes
    stdout once more at exit, and that must not fail either.
    """
    if not isinstance(error, OSError) or error.filename is not None or error.errno not in _CANNOT:
        return None
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return "stdout is closed" if error.errno == errno.EBADF else error.strerror
