"""A hostile https server on the loopback: what it hands out is chosen by the path of the address."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

MOST_BYTES = 40_000_000  # what an "endless" answer comes to, should nobody hang up
PIECE = b"A" * 65_536


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.over = files, threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        name = self.path.strip("/")
        file = self.server.files.get(name)
        self.send_response(302 if name == "http" else 200)
        if name == "http":
            self.send_header("Location", "http://127.0.0.1:9/key")
        if file is not None or name == "claims":
            self.send_header("Content-Length", str(1 << 32 if file is None else len(file)))
        self.end_headers()
        with suppress(OSError):  # the client hung up, as it should
            self._answer(name, file)

    def _answer(self, name: str, file: bytes | None) -> None:
        if file is not None:
            self.wfile.write(file)
        elif name == "endless":
            for _ in range(MOST_BYTES // len(PIECE)):
                self.wfile.write(PIECE)
        elif name == "drips":
            self.wfile.write(b"-")
            self.wfile.flush()
            self.server.over.wait(60)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def key_server(directory: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, Path]]:
    """(https://127.0.0.1:PORT, the certificate to trust).

    /NAME of `files`: those bytes.  /endless: no length and no end.  /claims: a length of 4 GB, then nothing.
    /drips: a byte, then silence until the client hangs up.  /http: sent on to a plain http address.
    """
    certificate, both = _certificate(directory)
    server = _Server(files)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", certificate
    finally:
        server.over.set()
        server.shutdown()
        server.socket.close()
        thread.join(60)


def _certificate(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate, both = directory / "server.pem", directory / "server-both.pem"
    certificate.write_bytes(pem)
    both.write_bytes(private + pem)
    return certificate, both
