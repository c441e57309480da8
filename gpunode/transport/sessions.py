"""A connection's channels: one a script, and from the second script on the next one is opened while this one runs.

To open a channel and to start a command in it is a round trip each. Whoever sends several scripts waits for the second
alone; whoever sends one opens none in advance. Each script has a session of its own all the same. Where sshd grants one
channel at a time (MaxSessions 1) it refuses the second, and each is opened when the one before it is gone.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from gpunode.transport.ssh_library import paramiko

# sshd counts a channel until its shell has ended and the channel is closed, a little after the script's end has come.
_GONE_AFTER_S = (0.02, 0.1, 0.5)
Refused = (paramiko.SSHException, EOFError, OSError)


class Sessions:
    """Of one connection whose login is done. Not for two threads at once."""

    def __init__(self, transport: paramiko.Transport) -> None:
        self._transport = transport
        self._scripts = 0
        self._ahead: threading.Thread | None = None
        self._spare: paramiko.Channel | None = None
        self._several = True  # False once the host refused one in advance

    def started(self, line: str, limit_s: float) -> paramiko.Channel:
        """A channel of its own in which the login shell runs `line`.

        Raises SSHException, EOFError or OSError; the connection is closed when the host does not answer in time.
        """
        channel = self._opened(limit_s)
        channel.event = _Answer(self._transport, limit_s)
        try:
            channel.exec_command(line)
        except BaseException:
            channel.close()
            raise
        self._scripts += 1
        if self._scripts > 1 and self._several:
            self._ahead = threading.Thread(target=self._open_ahead, args=(limit_s,), name="gpunode-ahead", daemon=True)
            self._ahead.start()
        return channel

    def _opened(self, limit_s: float) -> paramiko.Channel:
        if self._ahead is not None:
            self._ahead.join()
            self._ahead = None
        spare, self._spare = self._spare, None
        if spare is not None and not spare.closed:
            return spare
        for pause_s in _GONE_AFTER_S if self._scripts else ():
            with suppress(paramiko.ChannelException):
                return self._transport.open_session(timeout=limit_s)
            time.sleep(pause_s)
        return self._transport.open_session(timeout=limit_s)

    def _open_ahead(self, limit_s: float) -> None:
        with suppress(*Refused):
            self._spare = self._transport.open_session(timeout=limit_s)
            return
        self._several = False


class _Answer(threading.Event):
    """What exec_command waits for, which paramiko does without a limit."""

    def __init__(self, transport: paramiko.Transport, limit_s: float) -> None:
        super().__init__()
        self._transport = transport
        self._limit_s = limit_s

    def wait(self, timeout: float | None = None) -> bool:
        if super().wait(self._limit_s if timeout is None else timeout):
            return True
        self._transport.close()
        raise paramiko.SSHException(f"no answer to a command in {self._limit_s:.0f} s")
