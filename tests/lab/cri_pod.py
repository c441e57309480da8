"""Run one pod through a containerd's CRI, with the default handler. Fed to a lab host's python3: standard library only.

    python3 - /run/containerd/containerd.sock < cri_pod.py

Prints the pod's id. CRI is gRPC over HTTP/2 (RFC 9113); one unary call needs a preface, SETTINGS, HEADERS with
literal HPACK fields (RFC 7541, 6.2.2) and one DATA frame. Field numbers are from cri-api's runtime/v1/api.proto.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

SERVICE = "/runtime.v1.RuntimeService/"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def first_string(message: bytes) -> str:
    """Field 1 of a message whose first field is a short string."""
    length = message[1]
    assert message[0] == 0x0A, message
    assert length < 128, message
    return message[2 : 2 + length].decode()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name: str, value: str) -> bytes:
    assert max(len(name), len(value)) < 127
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def frames(connection: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    stream = connection.makefile("rb")
    while head := stream.read(9):
        payload = stream.read(int.from_bytes(head[:3], "big"))
        yield head[3], head[4], int.from_bytes(head[5:9], "big"), payload


def call(path: str, method: str, request: bytes, service: str = SERVICE) -> bytes:
    fields = ((":method", "POST"), (":scheme", "http"), (":path", service + method), (":authority", "localhost"),
              ("content-type", "application/grpc"), ("te", "trailers"))  # fmt: skip
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(120)
        connection.connect(path)
        body = b"\0" + struct.pack(">I", len(request)) + request
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + frame(SETTINGS, 0, 0)
            + frame(HEADERS, END_HEADERS, 1, b"".join(header(*f) for f in fields))
            + frame(DATA, END_STREAM, 1, body)
        )
        answer, trailers = b"", b""
        for kind, flags, stream, payload in frames(connection):
            if kind in (SETTINGS, PING) and not flags & ACK:
                connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind == DATA:
                answer += payload
            elif kind == HEADERS:
                trailers = payload
            if stream == 1 and kind in (DATA, HEADERS) and flags & END_STREAM:
                break
    if len(answer) < 5:
        raise SystemExit(f"{method} failed: {trailers!r}")
    return answer[5:]


def pod_config(name: str) -> bytes:
    metadata = field(1, name) + field(2, name + "-uid") + field(3, "default")
    host_namespaces = field(1, field(1, 2) + field(2, 1) + field(3, 1))  # network: NODE, so that no CNI is needed
    return field(1, metadata) + field(3, "/tmp") + field(8, field(2, host_namespaces))


if __name__ == "__main__":
    print(first_string(call(sys.argv[1], "RunPodSandbox", field(1, pod_config("lab")))))
