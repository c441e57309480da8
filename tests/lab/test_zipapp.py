"""gpunode as one file, on hosts with a bare python3 and nothing of ours: set up, checked, resumed after a reboot."""

from __future__ import annotations

import shlex

import pytest

from gpunode.cli.app import main

from .host import Host, Result
from .lab import Lab
from .product_runs import expect
from .test_reboot import RESUME, held_by_nouveau, wait_for_the_resumed_run

PLACE = "/root/gpunode.pyz"


@pytest.fixture(scope="module")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("zipapp") / "gpunode.pyz"
    assert main(["self", "zipapp", "--output", str(path)]) == 0
    return path.read_bytes()


def typed(host: Host, *words: str) -> Result:
    """As root, from another directory, by the distribution's own python3."""
    return host.run(shlex.join(("python3", PLACE, *words)), user="root")


@pytest.mark.parametrize(("distribution", "engine"), [("debian12", "docker"), ("debian-sid", "containerd")])
def test_a_bare_python_sets_its_own_host_up(lab: Lab, zipapp: bytes, distribution: str, engine: str) -> None:
    host = lab.host(distribution, gpu="h100", runtime=engine)
    host.write(PLACE, zipapp)
    assert host.run("python3 -c 'import typer'", user="root").returncode != 0, "the host has our packages"

    expect(typed(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    host.reboot()
    expect(typed(host, "check"), 0)
    again = expect(typed(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert "host matches the spec" in again.stdout


def test_after_the_reboot_the_file_goes_on(lab: Lab, zipapp: bytes) -> None:
    host = held_by_nouveau(lab, "debian13", "containerd")
    host.write(PLACE, zipapp)
    boots = host.boots

    said = typed(host, "setup", "--yes", "--reboot", "if-needed", "--trust-key", lab.repo_fingerprint)
    assert "this machine reboots now" in said.stdout, said.stderr  # its exit status may be lost with the connection
    unit = host.path(RESUME)
    host.wait_for_boot(boots)
    journal = wait_for_the_resumed_run(host)

    assert "this host matches the spec" in journal
    assert not unit.exists()
    expect(typed(host, "check"), 0)
