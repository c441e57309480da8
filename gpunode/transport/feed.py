"""What goes to a script's stdin, and when: the script with its data, and before it sudo's password where sudo asks."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from gpunode.transport.shell import QUESTION, Delivery
from gpunode.transport.sudo_password import HostPassword

_PIECE_BYTES = 32768


class StdinScript:
    """What to send on stdin, and when. The password is sent once, when sudo asks and it is this host's turn."""

    def __init__(self, delivery: Delivery, password: HostPassword | None = None) -> None:
        self._delivery = delivery
        self._password = password
        self._answered = False
        # sudo asks again, or in vain: it is ended before anything else is sent, and before its stdin ends
        self.refused = False
        self.waits = False  # sudo asks, and other hosts try the password first
        self.ended = False  # nothing more will be sent

    def next(self, began: bool, output: bytes | bytearray) -> bytes:
        """Bytes to send now, when the script began or not, and sudo's `output` on stderr so far."""
        if self.ended or self.refused:
            return b""
        if not self._delivery.asks or began:
            self.ended = True
            if self._password is not None:
                self._password.answered(taken=True)
            return self._delivery.payload
        asked = output.count(QUESTION.encode())
        if asked and not self._answered and self._password is not None:
            return self._in_turn(self._password)
        # One try only: three wrong ones lock the account where faillock watches.
        self.refused = asked > 1
        if self._password is not None:
            self._password.answered(taken=False) if self.refused else self._password.silent()
        return b""

    def _in_turn(self, password: HostPassword) -> bytes:
        line = password.take()
        self._answered = line is not None
        self.refused = line is None and password.withheld
        self.waits = line is None and not self.refused
        return line or b""


class Sink(Protocol):
    """The part of paramiko.Channel that is used here, and of a local pipe (transport/local.py)."""

    def send(self, s: bytes) -> int:
        """How much of it was taken. Raises TimeoutError for nothing yet, another OSError when nobody reads any more."""
        ...

    def shutdown_write(self) -> None: ...


class Writer:
    """Sends what the feed says, as fast as the far side takes it, without ever blocking."""

    def __init__(self, sink: Sink, feed: StdinScript) -> None:
        self._sink = sink
        self._feed = feed
        self._pending = memoryview(b"")
        self._closed = False

    @property
    def refused(self) -> bool:
        """Kill sudo now, then `close`: an end of its input would be one more wrong password (PAM, sudo-rs 0.2.5)."""
        return self._feed.refused and not self._closed

    @property
    def waits(self) -> bool:
        """Nothing of the script can run yet, and not because of this host."""
        return self._feed.waits and not self._closed

    def push(self, began: bool, output: bytes | bytearray) -> bool:
        """True while bytes wait for the far side to read."""
        if self._closed:
            return False
        if not self._pending:
            self._pending = memoryview(self._feed.next(began, output))
        try:
            while self._pending:
                sent = self._sink.send(self._pending[:_PIECE_BYTES].tobytes())
                self._pending = self._pending[sent:]
            if self._feed.ended:
                self._close()
        except TimeoutError:
            return True
        except OSError:  # the script ended, or the connection did: its exit status tells which
            self._closed = True
        return False

    def close(self) -> None:
        """Nothing more is sent, however little was."""
        with suppress(OSError):  # the far side ended meanwhile
            self._close()

    def _close(self) -> None:
        self._closed = True
        self._sink.shutdown_write()
