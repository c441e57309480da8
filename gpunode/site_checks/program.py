"""A program run on this machine, without a shell: bounded in time and output, and ended with all that it started.

A check of the site's gets the facts on stdin, no argument, a PATH of system directories, and nothing in its environment
to leak. Whoever may change it may do what gpunode may: gpunode/site_checks/trust.py says whose program is run at all.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import BinaryIO, NamedTuple

LIMIT_S = 10.0  # one program
MOST_BYTES = 64 * 1024  # of stdout, and of stderr
_GRACE_S = 1.0  # for one that is asked to end
_KILLED_S = 5.0
_POLL_MS = 50
_PIECE_BYTES = 8192
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Ended(NamedTuple):
    """How it ended. `code`: below zero for a signal, None where `why` says what kept it from an end of its own."""

    code: int | None
    out: bytes = b""
    err: bytes = b""
    why: str = ""


def run_program(
    argv: Sequence[str],
    stdin: bytes = b"",
    limit_s: float = LIMIT_S,
    *,
    environment: Mapping[str, str] = _ENVIRONMENT,
    stop: Callable[[], bool] = lambda: False,
    last_bytes: bool = False,
) -> Ended:
    """Run it, and end its process group with it: what it started in the background as well.

    It is ended, too, when `stop()` turns true. `last_bytes`: of what is too long the end is kept, and it is not ended.
    """
    with ExitStack() as stack:
        try:
            process = subprocess.Popen(
                tuple(argv),
                stdin=stack.enter_context(_memory(stdin)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=dict(environment),
                cwd="/",
                umask=0o077,
            )
        except OSError as error:  # no interpreter, not a program, noexec
            return Ended(None, why=f"cannot be started: {error.strerror}")
        assert process.stdout is not None
        assert process.stderr is not None
        stack.enter_context(process.stdout)
        stack.enter_context(process.stderr)
        out, err = bytearray(), bytearray()
        try:
            texts = {process.stdout.fileno(): out, process.stderr.fileno(): err}
            why = _listen(process.pid, texts, limit_s, stop, last_bytes=last_bytes)
        except ChildProcessError:  # gpunode was started with SIGCHLD ignored: the kernel keeps no code, Popen says 0
            return Ended(None, why="ended, and how is lost: SIGCHLD is ignored here")
        finally:
            with suppress(ChildProcessError):
                _end(process)
            process.poll()
        return Ended(None if why else process.returncode, bytes(out), bytes(err), why)


def _memory(text: bytes) -> BinaryIO:
    """As stdin, a program that reads none of it holds nobody up."""
    source = os.fdopen(os.memfd_create("facts"), "w+b", buffering=0)
    source.write(text)
    source.seek(0)
    return source


def _listen(
    pid: int, texts: dict[int, bytearray], limit_s: float, stop: Callable[[], bool], *, last_bytes: bool
) -> str:
    """Read until it ended; why not to its end, or ""."""
    deadline = time.monotonic() + limit_s
    poller = select.poll()
    for descriptor in texts:
        poller.register(descriptor, select.POLLIN)
    while time.monotonic() < deadline:
        over, more = _has_ended(pid), False  # asked before reading: all that it printed is then in the pipes
        for descriptor, _ in poller.poll(0 if over else _POLL_MS):
            piece = os.read(descriptor, _PIECE_BYTES)
            texts[descriptor] += piece
            more |= bool(piece)
            if not piece:
                poller.unregister(descriptor)
            if len(texts[descriptor]) > MOST_BYTES:
                if not last_bytes:
                    return f"printed over {MOST_BYTES} bytes"
                del texts[descriptor][:-MOST_BYTES]
        if over and not more:
            return ""
        if stop():
            return "was stopped"
    return f"did not end within {limit_s:.0f} s"


def _has_ended(pid: int) -> bool:
    """It stays a zombie, so that the number of its process group is nobody else's yet."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    if not _has_ended(process.pid):
        _tell(process.pid, signal.SIGTERM)
        _await(process.pid, _GRACE_S)
    _tell(process.pid, signal.SIGKILL)
    _await(process.pid, _KILLED_S)


def _tell(group: int, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all of it is gone; or runs as somebody else (setuid)
        os.killpg(group, sign)


def _await(pid: int, limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not _has_ended(pid) and time.monotonic() < end:
        time.sleep(0.02)
