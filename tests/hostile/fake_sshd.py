"""An SSH server that answers as no real one does. `act` is the behaviour of one: it is given every script's channel."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

Act = Callable[[paramiko.Channel, bytes], None]  # the channel, and the command line that came
Login = Callable[[paramiko.Transport], int]  # answers a key with a paramiko.AUTH_ constant


def _welcome(transport: paramiko.Transport) -> int:
    return AUTH_SUCCESSFUL


@dataclass
class _Host(paramiko.ServerInterface):
    transport: paramiko.Transport
    act: Act
    login: Login
    early: Act | None = None

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self.login(self.transport)

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,keyboard-interactive"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.early is not None:
            with suppress(OSError, EOFError, paramiko.SSHException):
                self.early(channel, command)
        threading.Thread(target=self._perform, args=(channel, command), daemon=True).start()
        return True

    def _perform(self, channel: paramiko.Channel, command: bytes) -> None:
        with suppress(OSError, EOFError, paramiko.SSHException):  # the client has left
            while channel.recv(65536):  # the client ends its input only once it knows that the script is there
                pass
            self.act(channel, command)


@dataclass
class FakeSshd:
    directory: Path
    port: int = 0
    key: paramiko.ECDSAKey = field(default_factory=paramiko.ECDSAKey.generate)
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def known_hosts(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.key.get_name()} {self.key.get_base64()}\n"


@contextmanager
def fake_sshd(directory: Path, act: Act, login: Login = _welcome, early: Act | None = None) -> Iterator[FakeSshd]:
    """One that speaks SSH properly until `login` or `act` has its way; `gone` is set when a client has left.

    `early` comes before the answer to the command.
    """
    server = FakeSshd(directory)
    transports: list[paramiko.Transport] = []

    def serve(link: socket.socket) -> None:
        transport = paramiko.Transport(link)
        transports.append(transport)
        transport.add_server_key(server.key)
        with suppress(OSError, EOFError, paramiko.SSHException):
            transport.start_server(server=_Host(transport, act, login, early))
            transport.join()
        server.gone.set()

    with _listening(serve) as server.port:
        yield server
        for transport in transports:
            transport.close()


@contextmanager
def raw_server(say: Callable[[socket.socket], None]) -> Iterator[int]:
    """Its port. Whoever connects is told whatever `say` says, which is no SSH."""

    def serve(link: socket.socket) -> None:
        with link, suppress(OSError):
            say(link)

    with _listening(serve) as port:
        yield port


@contextmanager
def _listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(32)

        def accept() -> None:
            with suppress(OSError):  # closed at the end
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
