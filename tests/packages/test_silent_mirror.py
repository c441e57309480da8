"""A mirror that takes connections and sends nothing is given up soon, by its address or name."""

from __future__ import annotations

import os
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode.apply.reasons import error_summary
from gpunode.model.action import Run
from gpunode.packages.apt import Apt
from gpunode.packages.base import Repository, Wanted
from gpunode.packages.registry import BACKENDS

own_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="a test with the machine's own apt")
NAMES = ("a", "b", "c", "d")
INDEX = "".join(
    f"Package: {name}\nVersion: 1\nArchitecture: all\nFilename: ./{name}.deb\nSize: 100000\nSHA256: {'0' * 64}\n"
    "Description: x\n\n"
    for name in NAMES
).encode()


class Silent(socketserver.StreamRequestHandler):
    """Answers for the index of `/packages`, begins with a.deb, and says nothing more."""

    def handle(self) -> None:
        words = b"x"
        while words.strip() and not self.server.over.is_set():  # type: ignore[attr-defined]
            path = self.rfile.readline().split(b" ")[1:2]
            while words := self.rfile.readline().strip():
                pass
            if not path or not self._answered(path[0].decode()):
                self.server.over.wait(60)  # type: ignore[attr-defined]
                return
            words = b"x"

    def _answered(self, path: str) -> bool:
        if path.endswith("a.deb"):
            self._send("200 OK", b"x" * 1000, 100000)
        elif path == "/packages/./Packages":
            self._send("200 OK", INDEX, len(INDEX))
            return True
        elif path.startswith("/packages/") and ".deb" not in path:
            self._send("404 Not Found", b"", 0)
            return True
        return False

    def _send(self, status: str, body: bytes, size: int) -> None:
        self.wfile.write(f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body)
        self.wfile.flush()


class Mirror(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Silent)
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.over.set()
        server.shutdown()


def apt(root: Path, sources: str) -> dict[str, str]:
    """An environment in which apt works below `root` alone."""
    for name in ("etc/apt/sources.list.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc/apt/sources.list").write_text(sources)
    (root / "status").write_text("")
    config = root / "apt.conf"
    config.write_text(
        f'Dir "{root}"; Dir::State::status "{root}/status"; APT::Sandbox::User "root"; Acquire::http::Proxy "DIRECT";\n'
    )
    return {**os.environ, "APT_CONFIG": str(config)}


def ended(run: Run, env: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of a command of gpunode's, with a second where it has twenty, and none between tries."""
    argv = [word.replace("Timeout=20", "Timeout=1") for word in run.argv]
    argv = ["0 0 0" if word in ("5 15 30", "10 30 60") else word for word in argv]
    script = run.stdin.replace("silence_s=45 look_s=5", "silence_s=3 look_s=1")
    assert script != run.stdin
    done = subprocess.run(argv, input=script, env={**env, **dict(run.env)}, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@own_apt
def test_an_index_that_does_not_come_is_asked_for_twice_and_named(mirror: Mirror, tmp_path: Path) -> None:
    env = apt(tmp_path, "")
    source = tmp_path / "etc/apt/sources.list.d/silent.list"
    source.write_text(f"deb [trusted=yes] {mirror.url}/silent ./\n")
    repository = Repository("silent", "Silent", f"{mirror.url}/silent", "", path=str(source))
    code, output = ended(Apt().refresh([repository]), env)
    assert code != 0
    assert f"{mirror.url}/silent" in error_summary(output)
    assert output.count("trying again") == 1


@own_apt
def test_packages_that_do_not_come_end_the_download_at_the_second(mirror: Mirror, tmp_path: Path) -> None:
    env = apt(tmp_path, f"deb [trusted=yes] {mirror.url}/packages ./\n")
    subprocess.run(["apt-get", "update", "-q"], env=env, check=True, capture_output=True, timeout=60)
    code, output = ended(Apt().fetch([Wanted(name) for name in NAMES]), env)
    assert code != 0
    assert f"no data comes from {mirror.url}/packages" in error_summary(output)
    assert output.count("trying again") == 1
    assert "Err:4" not in output, "the third file's silence was waited for as well"


REPOSITORY = Repository("gpunode-cuda", "NVIDIA's CUDA repository", "https://example.com/x/", "/etc/keys/cuda.key")


def stub(directory: Path, name: str, body: str) -> dict[str, str]:
    """An environment in which NAME is a Python program, one process as the real ones are."""
    (directory / name).write_text(f"#!/usr/bin/env python3\nimport os, signal, socket, sys, time\n{body}")
    (directory / name).chmod(0o755)
    return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}


SILENT = """mirror = socket.create_connection(("127.0.0.1", int(os.environ["MIRROR"])))
open(f"{sys.argv[0]}.pids", "a").write(f"{os.getpid()}\\n")
print("Refreshing metadata for: 'The CUDA repository' [..", end="", flush=True)
time.sleep(600)
"""
# As a program that finishes what it is at first.
STUBBORN = f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SILENT}"


@pytest.mark.skipif(shutil.which("ss") is None, reason="the server's address is what ss (iproute2) says")
@pytest.mark.parametrize(
    ("name", "run", "body"),
    [
        ("tdnf", BACKENDS["tdnf"].refresh([REPOSITORY]), SILENT),
        ("zypper", BACKENDS["zypper"].fetch([Wanted("nvidia-open")]), STUBBORN),
        ("pacman", BACKENDS["pacman"].fetch([Wanted("nvidia-open")]), SILENT),
    ],
    ids=["tdnf's index", "zypper's packages", "pacman's packages"],
)
def test_a_manager_that_would_wait_on_is_ended_and_what_it_asked_for_is_named(
    mirror: Mirror, tmp_path: Path, name: str, run: Run, body: str
) -> None:
    """zypper waits three minutes for each file, and tdnf for ever."""
    port = str(mirror.server_address[1])
    code, output = ended(run, {**stub(tmp_path, name, body), "MIRROR": port})
    assert code != 0
    assert f"from 127.0.0.1:{port}" in error_summary(output)
    assert "Refreshing metadata for: 'The CUDA repository'" in error_summary(output)
    assert output.count("trying again") == 1
    pids = (tmp_path / f"{name}.pids").read_text().split()
    assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


WAITS = {
    "for another process": 'print("Waiting for process with pid 12 to finish.", flush=True)\ntime.sleep(7)\n',
    "for data that come slowly": 'for _ in range(7):\n    os.write(9, b"x" * 5000)\n    time.sleep(1)\n',
    "for its own children": "for _ in range(7):\n    os.fork() and (os.wait(), True) or os._exit(time.sleep(1) or 0)\n",
}


@pytest.mark.parametrize("body", WAITS.values(), ids=WAITS)
def test_a_manager_is_not_ended_while_it_waits(tmp_path: Path, body: str) -> None:
    env = stub(tmp_path, "tdnf", f'os.dup2(os.open("{tmp_path}/data", os.O_CREAT | os.O_WRONLY), 9)\n{body}')
    assert ended(BACKENDS["tdnf"].refresh([REPOSITORY]), env)[0] == 0
