"""Kill a command at a chosen moment: ptrace(2) stops it at every system call, so no moment is missed or met twice."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import BinaryIO

# linux/ptrace.h
TRACEME, SYSCALL, SETOPTIONS, GETEVENTMSG = 0, 24, 0x4200, 0x4201
SYSCALL_EXIT = 2
SYSGOOD, FORK, VFORK, CLONE, EXITKILL = 1, 2, 4, 8, 1 << 20
WALL = 0x40000000  # waitpid(2): children of every kind
IN_SYSCALL = signal.SIGTRAP | 0x80  # what SYSGOOD makes of the stops at the door of a system call

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


def killed_after(change: int, argv: Sequence[str], stdin: BinaryIO, look: Callable[[], object]) -> bool:
    """Run `argv` and SIGKILL it, with all its children, right after the system call that made change number `change`.

    A change is a new answer of `look()`; before change 1 nothing has happened. What happens between two changes
    leaves nothing behind, so that 1, 2, 3 ... until the answer is False (it came to its end) are all moments there are.
    """
    # EXITKILL and the process group: whatever goes wrong here, nothing of it lives on.
    child = subprocess.Popen(
        argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=_traceme
    )
    os.waitpid(child.pid, WALL)  # stopped by its exec
    _ptrace(SETOPTIONS, child.pid, SYSGOOD | FORK | VFORK | CLONE | EXITKILL)
    _ptrace(SYSCALL, child.pid)
    seen, last = 0, look()
    try:
        while True:
            pid, status = os.waitpid(-child.pid, WALL)
            if not os.WIFSTOPPED(status):
                continue
            if os.WSTOPSIG(status) == IN_SYSCALL and _is_over(pid) and (now := look()) != last:
                seen, last = seen + 1, now
                if seen == change:
                    os.killpg(child.pid, signal.SIGKILL)
                    continue
            _ptrace(SYSCALL, pid, signal_of=status)
    except ChildProcessError:  # the last of them is gone
        child.returncode = 0
    return seen == change


def _traceme() -> None:
    os.setpgid(0, 0)
    _ptrace(TRACEME, 0)


def _is_over(pid: int) -> bool:
    """Whether it stopped behind the door: the system call is done."""
    message = ctypes.c_ulong()
    _libc.ptrace(GETEVENTMSG, pid, None, ctypes.addressof(message))
    return message.value == SYSCALL_EXIT


def _ptrace(request: int, pid: int, value: int = 0, *, signal_of: int = 0) -> None:
    """`signal_of`: the wait status of a stop; a signal that was meant for the process is handed on to it."""
    stopped_by = os.WSTOPSIG(signal_of) if signal_of else 0
    if stopped_by not in (IN_SYSCALL, signal.SIGTRAP, signal.SIGSTOP):  # those are ptrace's own
        value = value or stopped_by
    if _libc.ptrace(request, pid, None, value) == -1 and ctypes.get_errno() != 3:  # ESRCH: it was killed meanwhile
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {pid}: {os.strerror(ctypes.get_errno())}")
