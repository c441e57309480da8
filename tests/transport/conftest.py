from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpunode.transport.ssh_config import SshOptions, SshTarget
from tests.transport.sshd import SSHD, Sshd


@pytest.fixture(scope="session")
def need_sshd() -> None:
    if SSHD is None:
        pytest.skip("no sshd here: install openssh-server to run the SSH tests")


@pytest.fixture
def sshd(need_sshd: None, tmp_path: Path) -> Iterator[Callable[..., Sshd]]:
    """sshd(force=..., extra=...) starts one; all are stopped after the test."""
    started: list[Sshd] = []

    def start(force: str = "", extra: str = "", password: str = "") -> Sshd:
        directory = tmp_path / f"sshd{len(started)}"
        directory.mkdir()
        started.append(Sshd(directory, force, extra, password=password))
        return started[-1].start()

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def need_namespaces() -> None:
    if not can_have_passwords():
        pytest.skip("needs root, unshare and openssl")


def can_have_passwords() -> bool:
    """For a password of the test's own: root, who can give one process another /etc/shadow."""
    if os.geteuid() != 0 or SSHD is None or not (shutil.which("unshare") and shutil.which("openssl")):
        return False
    return subprocess.run(("unshare", "--mount", "true"), capture_output=True, check=False).returncode == 0


def target(server: Sshd) -> SshTarget:
    return SshTarget("127.0.0.1", getpass.getuser(), server.port)


def options(server: Sshd, known: str | None = None, **flags: object) -> SshOptions:
    """Trusts the server's key unless `known` says what known_hosts holds; reads nobody's ~/.ssh."""
    path = server.directory / "known_hosts"
    if known is None:
        known = f"[127.0.0.1]:{server.port} {server.host_key}\n"
    path.write_text(known)
    given: dict[str, object] = {
        "home": server.directory,
        "config": (),
        "known_hosts": (path,),
        "identities": (server.identity,),
        "agent": False,
        "become": "never",
    }
    return SshOptions(**{**given, **flags})  # type: ignore[arg-type]
