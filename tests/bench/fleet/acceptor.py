"""Starts `sshd -i` for every connection. sshd's own backlog of 128 drops connections when hundreds come at once."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress

BACKLOG = 4096
PORT = 22


def listening() -> socket.socket:
    listener = socket.socket()
    listener.bind(("0.0.0.0", PORT))
    listener.listen(BACKLOG)
    return listener


def accept_forever(listener: socket.socket, directory: str) -> None:
    """DIRECTORY holds sshd_config and the log. Returns never; ends by a signal."""
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    nobody = os.open(os.devnull, os.O_RDWR)
    argv = ("/usr/sbin/sshd", "-i", "-f", f"{directory}/sshd_config", "-E", f"{directory}/log")
    while True:
        link, _ = listener.accept()
        ends = [(os.POSIX_SPAWN_DUP2, link.fileno(), 0), (os.POSIX_SPAWN_DUP2, link.fileno(), 1)]
        os.posix_spawn(argv[0], argv, os.environ, file_actions=[*ends, (os.POSIX_SPAWN_DUP2, nobody, 2)])
        link.close()


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
