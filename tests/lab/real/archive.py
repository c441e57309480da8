"""A piece of Debian's archive, recorded as it was served: its indexes, signatures and packages, byte for byte.

A lab host asks for the true names and checks the true signatures; the lab's web server answers from the record, so
nothing is asked of the network again. What apt did not ask for while recording is not there (404).
"""

from __future__ import annotations

import contextlib
import http.server
import shutil
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.lab.storage import cache

HOSTS = ("deb.debian.org", "security.debian.org")
EVERYTHING = "main contrib non-free non-free-firmware"
FETCH_S = 120.0
# The record ages, and the Release files of updates and security say that they are good for a week.
APT_CONF = 'Acquire::Languages "none";\nAcquire::Check-Valid-Until "false";\n'


def record_root(suite: str) -> Path:
    """Its first level is host names, as in a web root of the lab."""
    return cache() / "real" / suite / "www"


def sources(suite: str, components: str = "main", *, security: bool = True) -> str:
    """Debian's own list of sources, as its installer writes it; every Debian host trusts the keyring."""
    keyring = "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    main = f"Types: deb\nURIs: http://{HOSTS[0]}/debian\nSuites: {suite} {suite}-updates\n"
    updates = f"Types: deb\nURIs: http://{HOSTS[1]}/debian-security\nSuites: {suite}-security\n"
    parts = (main, updates) if security else (main,)
    return "\n".join(f"{part}Components: {components}\n{keyring}" for part in parts)


@contextlib.contextmanager
def recorder(root: Path) -> Iterator[str]:
    """The address of a proxy that keeps below `root` what it fetches; for apt's Acquire::http::Proxy."""
    handler = type("Recorder", (_Recorder,), {"root": root})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        kept = self.root / str(parts.hostname) / urllib.parse.unquote(parts.path).lstrip("/")
        if not kept.is_file():
            try:
                _fetch(self.path, kept)
            except urllib.error.HTTPError as error:
                self._head(error.code, 0)
                return
            except OSError as error:
                self.log_error("%s: %s", self.path, error)
                self._head(502, 0)
                return
        self._head(200, kept.stat().st_size)
        with kept.open("rb") as stream:
            shutil.copyfileobj(stream, self.wfile)

    def log_message(self, format: str, *args: object) -> None:
        """Apt tells what it could not get."""

    def _head(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()


def _fetch(url: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # One name per thread: apt's methods may ask for one file at the same time.
    part = target.with_name(f"{target.name}.part{threading.get_ident()}")
    with urllib.request.urlopen(url, timeout=FETCH_S) as answer, part.open("wb") as stream:
        shutil.copyfileobj(answer, stream)
    part.rename(target)
