"""A connection's channels: one a script. From the second script on the next one is asked for with this one's command.

To open a channel and to start a command in it is a round trip each. The first is asked for with the login where that
fits (pipelining.py). Who says that several scripts will come waits for no other, who does not for the second alone; who
sends one opens none in advance. Each script has a session of its own all the same. Where sshd grants one channel at a
time (MaxSessions 1) it refuses the second, and each is opened when the one before it is gone.

What a script reads on its stdin would wait for the answer to the command. So where several will come, the one command
that all such scripts are started with waits on the host already: it reads what it shall run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from gpunode.transport.pipelining import FIRST, ask, start
from gpunode.transport.ssh_library import Asked, Transport, paramiko

# sshd counts a channel until its shell has ended and the channel is closed, a little after the script's end has come.
_GONE_AFTER_S = (0.02, 0.1, 0.5)
_READER_S = 20.0  # longer a reader does not wait for its script: some shells end a read after a while (TMOUT)
Refused = (paramiko.SSHException, EOFError, OSError)


class TooEarly(Exception):
    """A command that was sent with the login did not start. It only reads, and may be sent again, in its turn."""


class Sessions:
    """Of one connection whose login is done. Not for two threads at once."""

    def __init__(self, transport: Transport, *, several: bool = False, reader: str = "") -> None:
        """`reader`: the command that runs what comes on its stdin; "": none is started in advance."""
        self._transport = transport
        self._reader_line = reader if several else ""
        self._reader: Asked | None = None  # a session for it, in which it is started once that is granted
        self._announced = several
        self._scripts = 0
        self._asked, transport.asked = transport.asked, None
        self._several = True  # False once the host refused one in advance

    def started(self, line: str, limit_s: float, *, reads: bool) -> paramiko.Channel:
        """A channel of its own in which the login shell runs `line`; `reads`: something will come on its stdin.

        Raises SSHException, EOFError or OSError; the connection is closed when the host does not answer in time.
        TooEarly: that which was sent with the login is to be sent again, over another connection.
        """
        if self._asked is not None and self._asked.line:
            return self._early(self._asked, line, limit_s)
        if reads and (ready := self._ready(line, limit_s)) is not None:
            self._scripts += 1
            self._look_ahead()
            return ready
        channel = self._opened(limit_s)

        def along() -> None:
            """What need not wait for the answer to the command, and would cost a flight of its own after it."""
            if not reads:
                channel.shutdown_write()
            if self._scripts or self._announced:
                self._look_ahead()

        channel.event = _Answer(self._transport, limit_s, along)
        try:
            channel.exec_command(line)
        except BaseException:
            channel.close()
            raise
        self._scripts += 1
        return channel

    @property
    def sent(self) -> tuple[float, float] | None:
        """When the first command was sent, where that was with the login and nobody has heard of it yet."""
        return self._asked.sent if self._asked is not None and self._asked.line else None

    def _early(self, asked: Asked, line: str, limit_s: float) -> paramiko.Channel:
        """The channel in which `line` was started with the login."""
        self._asked, begin = None, time.monotonic()
        try:
            channel = asked.opened(limit_s)
            if (asked.line, channel.remote_chanid) != (line, FIRST):
                raise paramiko.SSHException("another command, or another session, than was meant")
            if self._announced:
                self._look_ahead()
            if not channel.event.wait(limit_s):
                raise paramiko.SSHException(f"no answer to a command in {limit_s:.0f} s")
            channel._wait_for_event()  # type: ignore[attr-defined]  # it has come: what it says
        except Refused as error:
            self._transport.close()
            if time.monotonic() - begin >= limit_s:
                raise  # it had its time, and would have it again
            raise TooEarly from error
        self._scripts += 1
        return channel

    def _look_ahead(self) -> None:
        """Ask for the next script's channel, and get a reader ready: first its session, then what runs in it."""
        if not self._several:
            return
        if self._asked is None:
            self._asked = ask(self._transport)
        reader = self._reader
        if reader is None:
            self._reader = ask(self._transport) if self._reader_line else None
        elif not reader.line and reader.granted:
            start(self._transport, reader, self._reader_line, reader.channel.remote_chanid, reads=True)
        elif reader.granted is False:
            self._reader_line, self._reader = "", None

    def _ready(self, line: str, limit_s: float) -> paramiko.Channel | None:
        """The reader, where it is what `line` starts and still waits; another one may come after it."""
        reader = self._reader
        if reader is None or reader.line != line:
            return None
        self._reader, channel = None, reader.channel
        young = time.monotonic() - reader.sent[1] < _READER_S
        if young and channel.event.wait(limit_s) and channel.event_ready and not channel.closed:
            return channel
        channel.close()
        return None

    def _opened(self, limit_s: float) -> paramiko.Channel:
        asked, self._asked = self._asked, None
        if asked is not None and (spare := self._spare(asked, limit_s)) is not None:
            return spare
        for pause_s in _GONE_AFTER_S if self._scripts else ():
            with suppress(paramiko.ChannelException):
                return self._transport.open_session(timeout=limit_s)
            self._do_without_reader()
            time.sleep(pause_s)
        return self._transport.open_session(timeout=limit_s)

    def _do_without_reader(self) -> None:
        """A script that still runs and a reader may be all that the host grants."""
        reader, self._reader, self._reader_line = self._reader, None, ""
        if reader is not None and reader.granted:
            reader.channel.close()

    def _spare(self, asked: Asked, limit_s: float) -> paramiko.Channel | None:
        try:
            channel = asked.opened(limit_s)
        except Refused:
            if not self._scripts:
                raise  # with the login: there was no other that it could have had to wait for
            self._several = False
            return None
        return None if channel.closed else channel


class _Answer(threading.Event):
    """What exec_command waits for, which paramiko does without a limit; first it sends what goes `along`."""

    def __init__(self, transport: paramiko.Transport, limit_s: float, along: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self._limit_s = limit_s
        self._along = along

    def wait(self, timeout: float | None = None) -> bool:
        self._along()
        if super().wait(self._limit_s if timeout is None else timeout):
            return True
        self._transport.close()
        raise paramiko.SSHException(f"no answer to a command in {self._limit_s:.0f} s")
