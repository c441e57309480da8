"""Sockets that others listen on: root asks none of them, and an answer without end or depth costs next to nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.engines.daemon.commands import VERIFY
from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from tests.facts.hosts import make_root, run_probe
from tests.hostile.users import NOBODY, give, needs_root, open_directory

pytestmark = needs_root
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
STREAM_LIMIT_BYTES = 4 << 20
FLOOD_BYTES = 64 << 20  # "without end", as far as a test may fill a disk


class Answers:
    """Counts who asks."""

    def __init__(self) -> None:
        self.asked = 0


@contextmanager
def listening(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[Answers]:
    path.parent.mkdir(parents=True, exist_ok=True)
    answers = Answers()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(8)

        def serve() -> None:
            while True:
                try:
                    asker, _ = server.accept()
                except OSError:
                    return
                answers.asked += 1
                with asker, suppress(OSError):
                    asker.recv(65536)
                    answer(asker)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        path.chmod(0o666)
        try:
            yield answers
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def says(body: bytes) -> Callable[[socket.socket], None]:
    return lambda asker: asker.sendall(HEAD + body)


def flood(asker: socket.socket) -> None:
    asker.sendall(HEAD)
    for _ in range(FLOOD_BYTES >> 16):
        asker.sendall(b"x" * 65536)


@contextmanager
def host() -> Iterator[Path]:
    """A root with a short path, for a socket's name has room for a hundred letters; its curl is this machine's."""
    with open_directory() as root:
        yield make_root(root, {"curl": '#!/bin/sh\nexec /usr/bin/curl "$@"\n'})


def looked_at(root: Path) -> tuple[HostFacts, int]:
    done = run_probe(("sh",), root)
    assert (done.returncode, done.stderr) == (0, b"")
    return assemble(done.stdout, "gpu07"), len(done.stdout)


def test_the_hosts_own_socket_is_asked() -> None:
    with host() as root, listening(root / "var/run/docker.sock", says(b'{"DefaultRuntime": "crun"}')) as answers:
        facts, _ = looked_at(root)
        assert answers.asked == 2  # how it is set, and what runs
    assert (facts.runtimes[0].effective_default, facts.runtimes[0].socket_mode) == ("crun", 0o666)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("var/run/docker.sock", f"/var/run/docker.sock belongs to uid {NOBODY}"),
        ("var/run", f"/var/run belongs to uid {NOBODY}"),
    ],
    ids=["the socket", "its directory"],
)
def test_a_users_socket_in_the_hosts_place_is_not_asked(given: str, why: str) -> None:
    with host() as root, listening(root / "var/run/docker.sock", says(b'{"DefaultRuntime": "crun"}')) as answers:
        give(root / given)
        facts, _ = looked_at(root)
        assert answers.asked == 0
    assert facts.runtimes[0].effective_default is None
    assert facts.unread["docker:info"] == why


def test_a_users_containerd_socket_is_not_asked() -> None:
    with host() as root, listening(root / "run/containerd/containerd.sock", says(b"")) as answers:
        give(root / "run/containerd/containerd.sock")
        facts, _ = looked_at(root)
        assert answers.asked == 0
    assert {"containerd:812:cri", "containerd:812:plugins"} <= set(facts.unread)


# ---- the questions of setup, once it has changed an engine

INFO = b'{"ID": "A", "DefaultRuntime": "nvidia", "Runtimes": {"nvidia": {}}}'


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root's alone; every tool that would ask a daemon by its own client leaves a mark there."""
    with tempfile.TemporaryDirectory(prefix="gpn", dir="/run") as name:
        directory = Path(name)
        for tool in ("ctr", "crictl", "crio", "crio-status", "docker"):
            (directory / tool).write_text(f"#!/bin/sh\necho {tool} >>{directory}/mark\nexit 1\n")
            (directory / tool).chmod(0o755)
        yield directory


def verify(directory: Path, kind: str, path: Path) -> subprocess.CompletedProcess[str]:
    words = ("sh", "-s", "--", kind, str(path), "nvidia", "-", "3", str(directory / "none"), "/none.toml")
    env = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}
    script = f"gpunode_api={'cri' if kind == 'containerd' else kind}\n" + "".join(map(resources.script, VERIFY))
    return subprocess.run(words, input=script, capture_output=True, text=True, timeout=100, env=env, check=False)


def test_setup_asks_the_hosts_own_socket(place: Path) -> None:
    path = place / "sockets/docker.sock"
    with listening(path, says(INFO)) as answers:
        done = verify(place, "docker", path)
        assert answers.asked >= 2
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["docker", "containerd", "crio"])
@pytest.mark.parametrize("given", ["sockets/d.sock", "sockets"], ids=["the socket", "its directory"])
def test_setup_asks_no_socket_of_a_users(place: Path, kind: str, given: str) -> None:
    """They might answer that all is well with an engine that is down."""
    path = place / "sockets/d.sock"
    with listening(path, says(INFO if kind == "docker" else b"")) as answers:
        give(place / given)
        done = verify(place, kind, path)
        assert answers.asked == 0
    assert done.returncode == 1
    assert done.stderr == f"{kind} was not asked on {path}: {place / given} belongs to uid {NOBODY}\n"
    assert not (place / "mark").exists()


# ---- a docker without root


@contextmanager
def users_docker(answer: Callable[[socket.socket], None], uid: int = NOBODY) -> Iterator[tuple[Path, Answers]]:
    with host() as root:
        directory = root / "proc/990"
        directory.mkdir()
        ids = "\t".join([str(uid)] * 4)
        (directory / "comm").write_text("dockerd\n")
        (directory / "status").write_text(f"Name:\tdockerd\nPPid:\t77\nUid:\t{ids}\nGid:\t{ids}\n")
        (directory / "cmdline").write_text("dockerd\0")
        (directory / "environ").write_text("")
        path = root / f"run/user/{uid}/docker.sock"
        with listening(path, answer) as answers:
            give(path)
            give(path.parent)
            path.parent.chmod(0o700)
            yield root, answers


def theirs(facts: HostFacts) -> tuple[bool, str | None]:
    (engine,) = (engine for engine in facts.runtimes if engine.user)
    return engine.active, engine.effective_default


def test_a_users_docker_is_asked_with_the_rights_of_its_user() -> None:
    with users_docker(says(b'{"DefaultRuntime": "crun"}')) as (root, answers):
        facts, _ = looked_at(root)
        assert answers.asked == 1
    assert theirs(facts) == (True, "crun")


def test_a_socket_that_its_user_may_not_open_is_not_opened_by_root() -> None:
    with users_docker(says(b'{"DefaultRuntime": "crun"}')) as (root, answers):
        give(root / "run/user" / str(NOBODY), 0)
        facts, _ = looked_at(root)
        assert answers.asked == 0
    assert theirs(facts) == (False, None)


@pytest.mark.parametrize(
    "answer",
    [flood, says(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), says(b'{"Runtimes": {' + b"[" * 5000)],
    ids=["without end", "too deep", "half"],
)
def test_a_mad_answer_costs_little_and_counts_as_none(answer: Callable[[socket.socket], None]) -> None:
    with users_docker(answer) as (root, _):
        facts, size = looked_at(root)
    assert size < STREAM_LIMIT_BYTES
    assert theirs(facts) == (False, None)
    assert facts.runtimes[0].name == "docker"
