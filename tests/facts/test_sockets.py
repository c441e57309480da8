"""Where an engine listens, in each way in which its command line and its file may say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.runtimes import parse_runtimes
from gpunode.facts.wire import decode
from gpunode.model.facts import RuntimeFacts
from tests.facts.hosts import make_root, run_probe
from tests.facts.test_docker import add, each_shell

USUAL = "/var/run/docker.sock"


def engine(shell: tuple[str, ...], root: Path, name: str) -> RuntimeFacts:
    done = run_probe(shell, root)
    assert done.returncode == 0, done.stderr
    (found,) = (one for one in parse_runtimes(decode(done.stdout), {}) if one.name == name)
    return found


@each_shell
@pytest.mark.parametrize(
    ("words", "text", "socket"),
    [
        ("-H=unix:///run/alt.sock", "{}", "/run/alt.sock"),
        ("-Hunix:///run/alt.sock", "{}", "/run/alt.sock"),
        ("--host unix:///run/alt.sock", "{}", "/run/alt.sock"),
        ("--host=unix:///run/alt.sock -H tcp://127.0.0.1:2375", "{}", "/run/alt.sock"),
        ("-H unix:///run/alt.sock -H fd://", "{}", USUAL),
        ("-H tcp://127.0.0.1:2375", '{"hosts": ["unix:///run/alt.sock"]}', USUAL),
        ("-D", '{"hosts" :\n ["tcp://0.0.0.0:2375", "unix:\\/\\/\\/run/alt.sock"]}', "/run/alt.sock"),
        ("-D", '{"hosts": ["fd://"]}', USUAL),
    ],
    ids=["-H=", "-H attached", "--host apart", "a second one", "systemd's", "a port alone", "in its file", "fd in it"],
)
def test_docker_is_asked_where_it_listens(
    shell: tuple[str, ...], tmp_path: Path, words: str, text: str, socket: str
) -> None:
    root = make_root(tmp_path)
    add(root, "proc/900/cmdline", "\0".join(("/usr/bin/dockerd", *words.split(), "")))
    add(root, "etc/docker/daemon.json", text)
    assert engine(shell, root, "docker").socket == socket


@each_shell
@pytest.mark.parametrize(
    "text",
    [
        "version = 3\n\n[grpc]\n  address = '/run/alt.sock'\n",
        "version = 4\n[plugins.'io.containerd.server.v1.grpc']\n  address = '/run/alt.sock'\n",
        '[debug]\naddress = "/run/x.sock"\n[ grpc ] # ours\nuid = 0\naddress="/run/alt.sock" # here\n',
        'version = 2\ngrpc.address = "/run/alt.sock"\n',
        "grpc = { uid = 0, address = '/run/alt.sock' }\n",
    ],
    ids=["as config default writes it", "version 4", "a comment", "dotted", "inline"],
)
def test_containerd_is_asked_where_its_file_says(shell: tuple[str, ...], tmp_path: Path, text: str) -> None:
    root = make_root(tmp_path)
    add(root, "proc/812/cmdline", "/usr/bin/containerd\0-c=/etc/containerd/alt.toml\0")
    add(root, "etc/containerd/alt.toml", text)
    found = engine(shell, root, "containerd")
    assert (found.config_path, found.socket) == ("/etc/containerd/alt.toml", "/run/alt.sock")


@pytest.mark.parametrize(
    "text",
    ['[debug]\naddress = "/run/x.sock"\n', "[grpc]\naddress = ''\n", '[ttrpc]\ngrpc.address = "/run/x.sock"\n'],
    ids=["another table", "empty", "dotted in another table"],
)
def test_containerd_is_asked_at_the_usual_place_otherwise(tmp_path: Path, text: str) -> None:
    root = make_root(tmp_path)
    add(root, "etc/containerd/main.toml", text)
    assert engine(("sh",), root, "containerd").socket == "/run/containerd/containerd.sock"
