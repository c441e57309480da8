"""The talk with one running script over an SSH channel: feed it, hear both streams, and always come back."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from dataclasses import field
from typing import Protocol

from gpunode.transport.answer import STDERR_GRACE_S, Answer
from gpunode.transport.feed import StdinScript, Writer
from gpunode.values import dataclass

_POLL_S = 0.5  # an exit status without an end of output wakes no descriptor
_BUSY_S = 0.01  # nor does a window that opens, while bytes wait for it
_PIECE_BYTES = 65536
_PIECES = 32  # of each stream, before the clock is looked at again


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
class Output:
    answer: Answer = field(default_factory=Answer)
    code: int | None = None  # how the process ended; -1: the connection broke, or a signal; None: nobody waited for it
    late: bool = False


def converse(channel: Channel, feed: StdinScript, timeout_s: float, end_sudo: Callable[[bytearray], None]) -> Output:
    """Until the answer is complete, can no longer become so, or `timeout_s` is over.

    `end_sudo` is called with what came on stderr when sudo refused the password: it kills that sudo.

    The exit status alone ends nothing: it overtakes output that is still on the way, and how long that takes is up to
    the link and to how busy both machines are.
    """
    output = Output()
    answer = output.answer
    deadline = time.monotonic() + timeout_s
    channel.settimeout(0.0)
    writer = Writer(channel, feed)
    poller = select.poll()
    poller.register(channel.fileno(), select.POLLIN)
    while True:
        ended = _ended(channel)  # asked before reading: what was printed before it is then in the buffers
        more = _drain(channel, answer)
        if answer.flooded or (answer.complete and answer.stderr.ended):
            return output
        if ended and not more:
            output.code = channel.recv_exit_status() if channel.exit_status_ready() else -1
            return output
        if answer.complete:  # only stderr is still waited for
            deadline = min(deadline, time.monotonic() + STDERR_GRACE_S)
        busy = not answer.complete and writer.push(answer.began, answer.stderr.noise)
        if writer.refused:
            end_sudo(answer.stderr.noise)
            writer.close()
        if writer.waits:  # the time is the script's own; the password's turn has a limit of its own
            deadline = time.monotonic() + timeout_s
        left = deadline - time.monotonic()
        if left <= 0:
            output.late = True
            return output
        if not more:
            _wait(channel, poller, min(left, _BUSY_S if busy else _POLL_S))


def _ended(channel: Channel) -> bool:
    """Nothing more can come. A script that only closed its output may still run: the exit status follows the EOF."""
    return channel.closed or bool(channel.eof_received and channel.exit_status_ready())


def _drain(channel: Channel, answer: Answer) -> bool:
    """Take what has arrived, within bounds; True when there may be more at once."""
    taken = 0
    while taken < _PIECES and not answer.flooded and channel.recv_ready():
        answer.out(channel.recv(_PIECE_BYTES))
        taken += 1
    while taken < 2 * _PIECES and not answer.flooded and channel.recv_stderr_ready():
        answer.err(channel.recv_stderr(_PIECE_BYTES))
        taken += 1
    return channel.recv_ready() or channel.recv_stderr_ready()


def _wait(channel: Channel, poller: select.poll, seconds: float) -> None:
    if channel.eof_received:  # the descriptor stays readable from now on
        channel.status_event.wait(seconds)
    else:
        poller.poll(seconds * 1000)
