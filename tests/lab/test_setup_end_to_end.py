"""The main job on real hosts: from no driver at all to a node whose check passes, here and over SSH."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import workload
from .images import USERLAND_2026
from .lab import Lab
from .product_runs import Controller, expect, fingerprint_of_state
from .site import ROOT, site_path

ENGINES = ("docker", "containerd")
# Each release with each engine; containerd over SSH goes further in test_typed_containerd, and two of these nodes set
# themselves up in test_zipapp (Debian 12 with docker, sid with containerd).
CASES = [
    ("debian12", "docker", "ssh"),
    ("debian12", "containerd", "local"),
    pytest.param("debian13", "docker", "local", marks=pytest.mark.wide),
    ("debian13", "containerd", "local"),
    ("debian-sid", "docker", "ssh"),
    ("debian-sid-2026", "docker", "ssh"),  # its sudo, coreutils and initramfs are the same to every engine
]
# By PAM in every login and every sudo; with the first alone, check missed the device nodes.
MISLEADING = "QUOTING_STYLE=c\nTIME_STYLE=+\nBLOCK_SIZE=human-readable\nPOSIXLY_CORRECT=1\nTAR_OPTIONS=--nothing\n"


@pytest.mark.parametrize(("distribution", "engine", "how"), CASES)
def test_from_no_driver_to_a_node_that_passes(
    lab: Lab, tmp_path: Path, distribution: str, engine: str, how: str
) -> None:
    host = lab.host(distribution, gpu="h100", runtime=engine, files={"/etc/environment": MISLEADING})
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    me = Controller(how, tmp_path / "home")
    # On the userland of 2026 through its sudo-rs.
    user = ("--user", "admin") if how == "ssh" and distribution in USERLAND_2026 else ()
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint, *user)

    expect(me.gpunode(host, *setup), 0)
    host.reboot()
    expect(me.gpunode(host, "check", *user), 0)

    before = fingerprint_of_state(host)
    expect(me.gpunode(host, *setup), 0)
    assert fingerprint_of_state(host) == before

    assert workload.ran_through_the_stub(host, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_pinned_keys_refuse_another_signer(lab: Lab, tmp_path: Path, engine: str) -> None:
    """The lab signs with a key of its own; without --trust-key that is a stranger's key, and nothing is installed."""
    host = lab.host("debian12", gpu="h100", runtime=engine)
    me = Controller("ssh", tmp_path / "home")
    refused = expect(me.gpunode(host, "setup", "--yes"), 1)
    said = refused.stdout + refused.stderr
    assert lab.repo_fingerprint in said.replace(" ", "")
    assert host.nsrun("dpkg-query -W nvidia-open").returncode != 0
    assert not host.exists("/usr/share/keyrings/gpunode-cuda.gpg")
