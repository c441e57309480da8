"""The byte stream below SSH: our own TCP socket, or a ProxyCommand's two ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress

from gpunode.transport.ssh_config import Hop

# Unacknowledged data for this long means the link is down (TCP_USER_TIMEOUT): a minute, with the keepalives.
_UNANSWERED_MS = 45_000
_AT_ONCE_BYTES = 32 * 1024  # about a packet of the answer


def dial(hop: Hop) -> Link:
    """A connected socket. Raises OSError: gaierror, ConnectionRefusedError, TimeoutError, ..."""
    try:
        link = socket.create_connection((hop.host, hop.port), hop.connect_timeout_s)
    except UnicodeError as error:  # Python's own words for what no resolver is asked for
        raise socket.gaierror(socket.EAI_NONAME, "a part of it is empty, or over 63 characters") from error
    # Without it the handshake's small packets wait for each other: 750 instead of 610 ms at 50 ms round trip.
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNANSWERED_MS)
    return Link(link)


class Link(socket.socket):
    """Acknowledges at once what came, and lets go of whoever reads from it when another thread closes it.

    sshd sends one small packet without waiting for the last one's acknowledgement only to terminals, and the kernel
    would keep ours back for 40 ms: a delay in every login.

    It takes in what has come and hands it out piece by piece: a packet is asked for in three pieces, and to ask the
    kernel for each is four calls and two changes of the thread that runs. Only one thread reads.
    """

    def __init__(self, link: socket.socket) -> None:
        limit_s = link.gettimeout()
        super().__init__(fileno=link.detach())
        self.settimeout(limit_s)
        self._came, self._given = b"", 0  # what came last, and how much of it was handed out

    def at_hand(self, size: int) -> bytes:
        """`size` bytes of what has come, b"" where it is less: a packet's later pieces come with the first one."""
        if self._given + size > len(self._came):
            return b""
        return self._next(size)

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        if self._given == len(self._came):
            self._came, self._given = self._received(), 0
        return self._next(bufsize)

    def _next(self, most: int) -> bytes:
        piece = self._came[self._given : self._given + most]
        self._given += len(piece)
        if self._given == len(self._came):
            self._came, self._given = b"", 0  # a connection may be idle until the run ends
        return piece

    def _received(self) -> bytes:
        piece = super().recv(_AT_ONCE_BYTES)
        if hasattr(socket, "TCP_QUICKACK"):
            with suppress(OSError):  # closed by another thread
                self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # the kernel forgets it soon
        return piece

    def close(self) -> None:
        with suppress(OSError):  # it is not connected any more, or closed
            self.shutdown(socket.SHUT_RDWR)
        super().close()


class Proxy:
    """A ProxyCommand with a real socket as its stdin and stdout (paramiko's own busy-loops when the command dies)."""

    def __init__(self, command: str) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                ("sh", "-c", f"exec {command}"),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        self.socket.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._end()

    def _end(self) -> None:
        """With its whole session: a command that takes SIGTERM lightly, or what it started, would keep us waiting."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
            return
        with suppress(ProcessLookupError):  # its group is its own (start_new_session), and it is not reaped yet
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
