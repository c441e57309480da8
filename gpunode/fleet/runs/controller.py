"""Which process runs a run, and whether it still lives."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from gpunode.foreign import read_file
from gpunode.model.run_record import Controller


def this_controller() -> Controller:
    return Controller(socket.gethostname(), os.getpid(), _started(os.getpid()), _boot())


def lives(controller: Controller) -> bool | None:
    """None: it is, or was, a process of another machine, of which nothing is known here."""
    if controller.host != socket.gethostname():
        return None
    if controller.boot and controller.boot != _boot():
        return False
    now = _started(controller.pid)
    return bool(now) and (not controller.started or controller.started == now)


def _started(pid: int) -> str:
    """Field 22 of proc_pid_stat(5); "" for no process, or one that is dead and not yet waited for."""
    text = _line(Path(f"/proc/{pid}/stat"))
    fields = text.rpartition(")")[2].split()  # a program's name may hold brackets and blanks
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _boot() -> str:
    return _line(Path("/proc/sys/kernel/random/boot_id"))


def _line(path: Path) -> str:
    with suppress(OSError):
        return read_file(path, 4096).decode("utf-8", "replace").strip()
    return ""
