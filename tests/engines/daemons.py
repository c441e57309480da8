"""Just enough of two daemons to be asked: CRI Status over gRPC, and docker's /info, each on a unix socket."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def cri_config(default: str, *handlers: str) -> str:
    """The CRI plugin's configuration as containerd's Status prints it; long enough for several DATA frames."""
    runtimes = {name: {"runtimeType": "io.containerd.runc.v2", "options": {}} for name in handlers}
    engine = {"defaultRuntimeName": default, "runtimes": runtimes}
    return json.dumps({"containerd": engine, "sandboxImage": "pause", "filler": "x" * 40_000}, separators=(",", ":"))


@contextlib.contextmanager
def containerd(directory: Path, config: str | None) -> Iterator[str]:
    """A socket that answers CRI Status with `config`; None: it answers as a daemon whose CRI plugin did not load."""
    message = b"" if config is None else _status(config)
    with _listening(directory / "cri.sock", lambda connection: _answer_grpc(connection, message)) as path:
        yield path


@contextlib.contextmanager
def containerd_before_1_6(directory: Path, config: str) -> Iterator[str]:
    """Likewise, of one that has no runtime.v1: the first call of each pair has no answer but its status, 12."""
    message, calls = _status(config), itertools.count()
    with _listening(
        directory / "cri.sock", lambda connection: _answer_grpc(connection, message if next(calls) % 2 else b"", b"12")
    ) as path:
        yield path


@contextlib.contextmanager
def pods(directory: Path, *listed: tuple[str, str, str]) -> Iterator[str]:
    """A socket that answers ListPodSandbox with these (id, name, handler), all in the namespace "default"."""
    message = b"".join(_field(1, _pod(*pod)) for pod in listed)
    with _listening(directory / "cri.sock", lambda connection: _answer_grpc(connection, message)) as path:
        yield path


def _pod(pod: str, name: str, handler: str) -> bytes:
    """PodSandbox{id: 1, metadata: 2, state: 3, runtime_handler: 7}; proto3 leaves out what is empty."""
    metadata = _field(1, name.encode()) + _field(2, b"uid") + _field(3, b"default")
    return (
        _field(1, pod.encode()) + _field(2, metadata) + b"\x18\x01" + (_field(7, handler.encode()) if handler else b"")
    )


@contextlib.contextmanager
def dockerd(directory: Path, default: str | None, *handlers: str, root: str = "/var/lib/docker") -> Iterator[str]:
    """A socket that answers GET /info; None: with status 500."""
    runtimes = {name: {"path": f"/usr/bin/{name}"} for name in handlers}
    about = {"ID": "A", "DockerRootDir": root, "Runtimes": runtimes, "DefaultRuntime": default}
    body = json.dumps(about, separators=(",", ":"))
    status = "200 OK" if default else "500 Internal Server Error"

    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n{body}".encode())

    with _listening(directory / "docker.sock", answer) as path:
        yield path


@contextlib.contextmanager
def crio(directory: Path, config: str | None) -> Iterator[str]:
    """A socket that answers GET /config as CRI-O's inspection endpoint does; None: with status 404."""
    body = (config or "").encode()

    def answer(connection: socket.socket) -> None:
        asked = connection.recv(65536).split()[1]
        status = b"200 OK" if config is not None and asked == b"/config" else b"404 Not Found"
        head = b"HTTP/1.1 %s\r\nContent-Type: application/toml\r\nContent-Length: %d\r\n" % (status, len(body))
        connection.sendall(head + b"Connection: close\r\n\r\n" + body)

    with _listening(directory / "crio.sock", answer) as path:
        yield path


@contextlib.contextmanager
def silent(directory: Path) -> Iterator[str]:
    """A socket that accepts and never answers."""
    with _listening(directory / "silent.sock", lambda connection: threading.Event().wait(20)) as path:
        yield path


@contextlib.contextmanager
def _listening(path: Path, answer: Callable[[socket.socket], object]) -> Iterator[str]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return  # the test is over
                threading.Thread(target=_serve_one, args=(connection, answer), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield str(path)
        server.shutdown(socket.SHUT_RDWR)


def _serve_one(connection: socket.socket, answer: Callable[[socket.socket], object]) -> None:
    with connection, contextlib.suppress(ConnectionError):
        answer(connection)


def _answer_grpc(connection: socket.socket, message: bytes, without: bytes = b"0") -> None:
    """One unary call: read until the client's END_STREAM, then headers, the message in pieces, and trailers.

    `without`: the status in the trailers where there is no message.
    """
    _exactly(connection, len(PREFACE))
    connection.sendall(_frame(SETTINGS, 0, 0))
    while True:
        head = _exactly(connection, 9)
        kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
        _exactly(connection, struct.unpack(">I", b"\0" + head[:3])[0])
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(_frame(SETTINGS, ACK, 0))
        if stream and flags & END_STREAM:
            break
    status = b"0" if message else without
    # 0x88 is ":status: 200" in HPACK's static table.
    connection.sendall(_frame(HEADERS, END_HEADERS, stream, b"\x88"))
    body = b"\0" + struct.pack(">I", len(message)) + message if message else b""
    for start in range(0, len(body), 16_000):
        connection.sendall(_frame(DATA, 0, stream, body[start : start + 16_000]))
    connection.sendall(
        _frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\0\x0bgrpc-status" + bytes([len(status)]) + status)
    )
    connection.recv(4096)


def _status(config: str) -> bytes:
    """StatusResponse{info: {"golang": ..., "config": config}}: field 2 is a map, so entries of {1: key, 2: value}."""
    entries = (("golang", '"go1.24"'), ("config", config), ("lastCNILoadStatus", "cni config load failed"))
    return b"".join(_field(2, _field(1, key.encode()) + _field(2, value.encode())) for key, value in entries)


def _field(number: int, payload: bytes) -> bytes:
    size, length = len(payload), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        more = connection.recv(count - len(received))
        if not more:
            raise ConnectionError("the client went away")
        received += more
    return received
