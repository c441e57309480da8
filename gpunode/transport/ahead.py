"""A script that runs here while gpunode still loads what will ask for its answer.

This file is loaded before almost all others, so it loads next to nothing itself: subprocess, with what it needs, takes
8 ms, in which the script might run already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from fcntl import F_SETPIPE_SZ, fcntl
from io import FileIO

from gpunode.transport.shell import Delivery, deliver

_PIPE_BYTES = 1 << 20  # what anybody's pipe may hold: a script that is started ahead does not wait for its reader

_running: dict[tuple[tuple[str, ...], bytes], Ahead] = {}


class Ahead:
    """A program that was started: as much of subprocess.Popen as whoever takes it over needs."""

    stdin = None

    def __init__(self, pid: int, stdout: FileIO, stderr: FileIO, fault: FileIO) -> None:
        self.pid, self.stdout, self.stderr, self._fault = pid, stdout, stderr, fault
        self.returncode: int | None = None

    def begun(self) -> bool:
        """False where there is no such program, or it cannot be started: it is waited for then."""
        with self._fault:
            if not self._fault.read(1):
                return True
        with suppress(ChildProcessError):  # see poll
            os.waitpid(self.pid, 0)
        self.close()
        return False

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # who started us ignores SIGCHLD: the kernel waits for it, and tells no status
                ended, status = self.pid, 0
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def close(self) -> None:
        for stream in (self.stdout, self.stderr, self._fault):
            stream.close()


def start_ahead(script: str) -> None:
    """Start `script` here and now, as whoever runs gpunode, while gpunode still loads what will ask for its answer.

    Local.run takes it over where it is asked for just this script. What nobody took, `end_ahead` of local.py ends.
    """
    delivery = deliver(script, b"")
    with ExitStack() as stack, suppress(OSError):  # whoever asks for it then starts it, and says why it cannot be
        source = stack.enter_context(memory_file(delivery.payload))
        _running[delivery.argv, delivery.payload] = _forked(delivery.argv, source.fileno())


def taken(delivery: Delivery) -> Ahead | None:
    """The script that was started ahead, whose answer is now the caller's; None where it was not, or could not be."""
    process = _running.pop((delivery.argv, delivery.payload), None)
    return process if process is not None and process.begun() else None


def all_taken() -> Iterator[Ahead]:
    """Each that is left, and that began: only then it has a session of its own, by which it can be ended."""
    while _running:
        process = _running.popitem()[1]
        if process.begun():
            yield process


def environment() -> dict[str, str]:
    """Of every script that runs here."""
    return {**os.environ, "LC_ALL": "C"}


def memory_file(payload: bytes) -> FileIO:
    """For stdin: no limit as argv has, no disk that may be full, and seekable, so readers stop where they must."""
    source = FileIO(os.memfd_create("in"), "r+b")
    source.write(payload)
    source.seek(0)
    return source


def _forked(argv: tuple[str, ...], source: int) -> Ahead:
    """Raises OSError. No thread of ours runs yet: a fork copies none, nor lets go of what one holds."""
    with ExitStack() as ours, ExitStack() as theirs:
        readers, writers = list[FileIO](), list[int]()
        for _ in range(3):
            reader, writer = os.pipe()
            readers.append(ours.enter_context(FileIO(reader, "rb")))
            writers.append(theirs.enter_context(FileIO(writer, "wb")).fileno())
        *outputs, fault = writers
        for writer in outputs:
            fcntl(writer, F_SETPIPE_SZ, _PIPE_BYTES)
        inherited = _inherited()
        pid = os.fork()
        if pid == 0:
            _become(argv, (source, *outputs), inherited, fault)
        ours.pop_all()
        return Ahead(pid, *readers)


def _inherited() -> list[int]:
    """What whoever started us left open, for us alone."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the list itself is gone
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def _become(argv: tuple[str, ...], streams: tuple[int, ...], inherited: list[int], fault: int) -> None:
    """In the child: be the program, in a session of its own (Ctrl-C stops gpunode between steps, not the step), or end.

    `fault` closes when the program begins, and is written to where it cannot.
    """
    try:
        from signal import SIG_DFL, SIGPIPE, SIGXFSZ, signal  # in here they take nobody's time

        for ignored in (SIGPIPE, SIGXFSZ):  # by Python, and a program would inherit that
            signal(ignored, SIG_DFL)
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for descriptor in inherited:
            os.close(descriptor)
        os.execvpe(argv[0], argv, environment())
    finally:
        with suppress(OSError):
            os.write(fault, b"!")
        os._exit(127)
