"""An HTTPS server of the tests' own in the place of an API server: real TLS, one node, and answers that a test sets.

Unknown paths are 404. A test says what is wrong with it by `answers`, (method, path) -> what answers instead.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

TOKEN = "visible-only-to-the-server-41d8"
NODE, PODS = "/api/v1/nodes/gpu07", "/api/v1/namespaces/default/pods"
Answer = Callable[["Handler"], None]


class Authority:
    """Signs certificates, as PEM with their keys."""

    def __init__(self, name: str = "kubernetes") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self._signed(self._name, self._key.public_key(), days=30, authority=True)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def certify(self, name: str, group: str = "", *, days: int = 30) -> tuple[str, str]:
        """(certificate, key). `days`: until it ends; below zero: it ended then."""
        key = ec.generate_private_key(ec.SECP256R1())
        groups = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group)] if group else []
        subject = x509.Name([*groups, x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        signed = self._signed(subject, key.public_key(), days=days)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return signed.public_bytes(serialization.Encoding.PEM).decode(), key.private_bytes(*form).decode()

    def _signed(self, subject: x509.Name, key: Any, *, days: int, authority: bool = False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=60))
        made = made.not_valid_after(now + datetime.timedelta(days=days))
        made = made.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return made.sign(self._key, hashes.SHA256())


class ApiServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.node: dict[str, Any] = {
            "metadata": {"name": "gpu07", "resourceVersion": "1", "labels": {"team": "ml"}, "annotations": {}},
            "status": {"nodeInfo": {"kubeletVersion": "v1.31.4"}, "anUnknownField": [None]},
        }
        self.answers: dict[tuple[str, str], Answer] = {}
        self.asked: list[tuple[str, str]] = []
        self.headers: list[str] = []  # of Authorization
        self.patches: list[dict[str, Any]] = []
        self.made: list[dict[str, Any]] = []  # what was posted
        self.before_patch: Callable[[], None] = lambda: None
        self.over = threading.Event()

    @property
    def labels(self) -> dict[str, str]:
        found: dict[str, str] = self.node["metadata"]["labels"]
        return found

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not believe this server ends the handshake."""


class Handler(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append((self.command, path))
        self.server.headers.append(self.headers.get("Authorization", ""))
        body = self.body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        if self.command == "POST":
            self.server.made.append(body)
        if answer := self.server.answers.get((self.command, path)):
            answer(self)
        elif (self.command, path) == ("PATCH", NODE):
            self.server.before_patch()
            self._patched(body)
        elif (self.command, path) == ("GET", NODE):
            self.say(200, self.server.node)
        else:
            self.say(404, status(404, "not found"))

    do_GET = do_PATCH = do_POST = do_DELETE = _any

    def _patched(self, body: dict[str, Any]) -> None:
        assert "merge-patch" in self.headers["Content-Type"]
        if self.patch(body):
            self.say(200, self.server.node)
        else:
            self.say(409, status(409, "the object has been modified"))

    def patch(self, body: dict[str, Any]) -> bool:
        """As a merge patch, on the condition of its version: whether that held."""
        meta = self.server.node["metadata"]
        if body["metadata"].pop("resourceVersion") != meta["resourceVersion"]:
            return False
        self.server.patches.append(body)
        for key, values in body["metadata"].items():
            for name, value in values.items():
                meta[key].pop(name, None)
                if value is not None:
                    meta[key][name] = value
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        return True

    def say(self, code: int, body: object, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def status(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}


@contextmanager
def serving(certificate: tuple[str, str], directory: Path) -> Iterator[ApiServer]:
    """Answers with this certificate until the end. `directory`: for it, as a file."""
    pem = directory / "server.pem"
    pem.write_text("".join(certificate))
    server = ApiServer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def kubeconfig(directory: Path, server: str, authority: str | None, user: dict[str, Any], **cluster: Any) -> Path:
    """One context, called lab. JSON is YAML as well."""
    import base64

    known = {"certificate-authority-data": base64.b64encode(authority.encode()).decode()} if authority else {}
    path = directory / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": server, **known, **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path
