"""The talk with one running script over an SSH channel: feed it, hear both streams, and always come back."""

from __future__ import annotations

import select
import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

from gpunode.errors import TransportError
from gpunode.transport.base import Completed
from gpunode.transport.shell import Feed, after_begin, began, not_started

OUTPUT_LIMIT_BYTES = 256 * 1024 * 1024  # a script that prints without end must not eat the controller's memory
_QUIET_S = 0.5  # after the exit status: how long output may pause while a left-behind child keeps the pipe open
_POLL_S = 0.1  # window and exit status wake no descriptor


class Channel(Protocol):
    """The part of paramiko.Channel that is used here."""

    @property
    def eof_received(self) -> bool | int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def status_event(self) -> threading.Event: ...

    def fileno(self) -> int: ...
    def recv_ready(self) -> bool: ...
    def recv(self, nbytes: int) -> bytes: ...
    def recv_stderr_ready(self) -> bool: ...
    def recv_stderr(self, nbytes: int) -> bytes: ...
    def send(self, s: bytes) -> int: ...
    def shutdown_write(self) -> None: ...
    def settimeout(self, timeout: float | None) -> None: ...
    def exit_status_ready(self) -> bool: ...
    def recv_exit_status(self) -> int: ...


@dataclass
class Heard:
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    code: int | None = None  # exit status; None: time ran out; -1: the connection broke, or a signal killed the script
    flooded: bool = False


def converse(channel: Channel, feed: Feed, timeout_s: float) -> Heard:
    """Until the script has ended and its output is in, or `timeout_s` is over."""
    heard = Heard()
    deadline = time.monotonic() + timeout_s
    writer = _Writer(channel, feed)
    poller = select.poll()
    poller.register(channel.fileno(), select.POLLIN)
    last = time.monotonic()
    while True:
        over = channel.exit_status_ready()  # asked before reading: what was printed before it is then in the buffers
        complete = over and (channel.eof_received or channel.closed)
        if _drain(channel, heard):
            last = time.monotonic()
        heard.flooded = len(heard.stdout) + len(heard.stderr) > OUTPUT_LIMIT_BYTES
        if complete or heard.flooded or (over and time.monotonic() - last > _QUIET_S):
            heard.code = channel.recv_exit_status() if over else None
            return heard
        busy = not over and writer.push(heard)
        left = deadline - time.monotonic()
        if left <= 0:
            return heard
        _wait(channel, poller, min(left, _POLL_S / 10 if busy else _POLL_S))


def completed(target: str, heard: Heard, seconds: float) -> Completed:
    """What the script answered; 124 when time ran out. Raises TransportError when it never began, or never ended."""
    if heard.flooded:
        raise TransportError(
            f"{target}: a script printed more than {OUTPUT_LIMIT_BYTES >> 20} MiB",
            remedy="look for an rc file or a command on the host that prints without end",
        )
    if not began(heard.stdout):
        if heard.code is not None:
            raise not_started(target, heard.code, heard.stdout, heard.stderr)
        raise TransportError(
            f"{target}: the login succeeded, but no script began within {seconds:.0f} s",
            evidence="neither the login shell nor sudo answered",
            remedy="log in with ssh and see what the shell's start-up files or sudo wait for",
        )
    code = 124 if heard.code is None else heard.code
    return Completed(code, after_begin(heard.stdout), after_begin(heard.stderr), seconds)


def _drain(channel: Channel, heard: Heard) -> bool:
    """Take what has arrived; True when there was anything."""
    before = len(heard.stdout) + len(heard.stderr)
    while channel.recv_ready():
        heard.stdout += channel.recv(65536)
    while channel.recv_stderr_ready():
        heard.stderr += channel.recv_stderr(65536)
    return len(heard.stdout) + len(heard.stderr) > before


def _wait(channel: Channel, poller: select.poll, seconds: float) -> None:
    if channel.eof_received:  # the descriptor stays readable from now on
        channel.status_event.wait(seconds)
    else:
        poller.poll(seconds * 1000)


class _Writer:
    """Sends what the feed says, as fast as the far side takes it, without ever blocking."""

    def __init__(self, channel: Channel, feed: Feed) -> None:
        self._channel = channel
        self._feed = feed
        self._pending = memoryview(b"")
        self._closed = False
        channel.settimeout(0.0)

    def push(self, heard: Heard) -> bool:
        """True while bytes wait for the far side's window."""
        if self._closed:
            return False
        if not self._pending:
            self._pending = memoryview(self._feed.next(heard.stdout, heard.stderr))
        try:
            while self._pending:
                sent = self._channel.send(self._pending[:32768].tobytes())
                self._pending = self._pending[sent:]
            if self._feed.ended:
                self._channel.shutdown_write()
                self._closed = True
        except TimeoutError:
            return True
        except OSError:  # the script ended, or the connection did: its exit status tells which
            self._closed = True
        return False
