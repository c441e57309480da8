"""The lab's web: one server for all names, http and https, which can misbehave on request."""

from __future__ import annotations

import http.server
import ssl
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

STALL_S = 600.0
Kind = Literal["stall", "reset", "truncate", "corrupt"]


@dataclass(frozen=True)
class Slow:
    bytes_per_s: int


Fault = int | Kind | Slow  # a number is an HTTP status


@dataclass(frozen=True)
class Request:
    host: str
    path: str
    fault: Fault | None


@dataclass
class Site:
    """What the server offers and how it fails. `faults`: a part of "host/path" to a fault; the first match counts."""

    root: Path
    faults: dict[str, Fault] = field(default_factory=dict)
    log: list[Request] = field(default_factory=list)

    def reset(self) -> None:
        self.faults.clear()
        self.log.clear()

    def fault_for(self, host: str, path: str) -> Fault | None:
        return next((fault for part, fault in self.faults.items() if part in f"{host}{path}"), None)

    def file(self, host: str, path: str) -> Path | None:
        found = (self.root / host / path.lstrip("/")).resolve()
        return found if found.is_file() and self.root.resolve() in found.parents else None


class Web:
    """Listens on 80 and 443 of the bridge."""

    def __init__(self, root: Path, certificate: Path, address: str) -> None:
        self.site = Site(root)
        self._stopping = threading.Event()
        handler = type("LabHandler", (_Handler,), {"site": self.site, "stopping": self._stopping})
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        plain, secure = _Server((address, 80), handler), _Server((address, 443), handler)
        # The handshake belongs into the connection's own thread: a client that hangs in it must not stop the others.
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        self._servers = (plain, secure)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def root(self) -> Path:
        return self.site.root

    @property
    def faults(self) -> dict[str, Fault]:
        return self.site.faults

    @property
    def log(self) -> list[Request]:
        return self.site.log

    def close(self) -> None:
        self._stopping.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is the tests' daily bread."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site
    stopping: threading.Event

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Site.log is the record."""

    def _serve(self, *, with_body: bool) -> None:
        host = (self.headers.get("Host") or "").partition(":")[0]
        path = urllib.parse.unquote(self.path.partition("?")[0])  # apt asks for %2b where a version has +
        fault = self.site.fault_for(host, path)
        self.site.log.append(Request(host, path, fault))
        if fault == "reset":
            self.close_connection = True
            self.connection.close()
        elif fault == "stall":
            self.stopping.wait(STALL_S)
        elif isinstance(fault, int):
            self._send_status(fault)
        elif (found := self.site.file(host, path)) is None:
            self._send_status(404)
        else:
            self._send_file(found, fault, with_body)

    def _send_status(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send_file(self, path: Path, fault: Fault | None, with_body: bool) -> None:
        content = path.read_bytes()
        if fault == "corrupt":
            content = content[:-20] + bytes(byte ^ 0xFF for byte in content[-20:])
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.end_headers()
        if not with_body:
            return
        if fault == "truncate":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif isinstance(fault, Slow):
            self._trickle(content, max(1, fault.bytes_per_s // 10))
        else:
            self.wfile.write(content)

    def _trickle(self, content: bytes, chunk: int) -> None:
        for start in range(0, len(content), chunk):
            self.wfile.write(content[start : start + chunk])
            time.sleep(0.1)
