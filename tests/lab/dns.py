"""The lab's name server: the vendor's names and *.lab lead to the lab's web server, nothing else exists."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Literal

TYPE_A = 1
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3


class Dns:
    """`mode` and `names` may be changed while it runs. Without any server, some clients stall for seconds a request."""

    def __init__(self, names: tuple[str, ...], address: str) -> None:
        self.names = dict.fromkeys(names, address)
        self.mode: Literal["ok", "drop", "servfail"] = "ok"
        self.log: list[str] = []
        self._address = address
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        threading.Thread(target=self._serve, daemon=True).start()

    def reset(self, names: tuple[str, ...]) -> None:
        self.names = dict.fromkeys(names, self._address)
        self.mode = "ok"
        self.log.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes recvfrom
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                query, peer = self._socket.recvfrom(1500)
            except OSError:
                return
            if not query:
                return
            with contextlib.suppress(IndexError, UnicodeDecodeError, OSError):  # not a query: no answer
                answer = self._answer(query)
                if answer:
                    self._socket.sendto(answer, peer)

    def _answer(self, query: bytes) -> bytes | None:
        name, end = _question_name(query)
        kind = int.from_bytes(query[end : end + 2], "big")
        self.log.append(name)
        if self.mode == "drop":
            return None
        address = self.names.get(name) or (self._address if name.endswith(".lab") else None)
        status = SERVER_FAILURE if self.mode == "servfail" else NO_ERROR if address else NO_SUCH_NAME
        records = b""
        if address and status == NO_ERROR and kind == TYPE_A:
            # A pointer to the question's name, type A, class IN, ten seconds, four bytes.
            records = struct.pack(">HHHIH", 0xC00C, TYPE_A, 1, 10, 4) + socket.inet_aton(address)
        flags = 0x8580 | status  # response, authoritative, recursion available
        header = query[:2] + struct.pack(">HHHHH", flags, 1, 1 if records else 0, 0, 0)
        return header + query[12 : end + 4] + records


def _question_name(query: bytes) -> tuple[str, int]:
    """The first question's name, and where its type begins (RFC 1035, 4.1.2)."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    return ".".join(labels).lower(), at + 1
