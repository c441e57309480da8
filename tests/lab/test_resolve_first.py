"""A version that no repository has, and an undo: nothing that was added for real resolvers stays on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .resolver_cases import OLD_TOOLKIT, ZYPPER, Case, apt, dnf, packages

# Everything that says where packages come from and whose signature counts.
STATE = (
    "find /etc/apt /etc/yum.repos.d /etc/zypp/repos.d /etc/pki/rpm-gpg /usr/share/keyrings -type f 2>/dev/null | sort |"
    " xargs -r sha256sum; ! command -v rpm >/dev/null || rpm -q gpg-pubkey"
)
# Of a host whose administrator trusted everybody: the list is switched off for the while, and comes back.
WRONG = {
    "/etc/apt/sources.list.d/toolkit.list": "deb [trusted=yes] https://nvidia.github.io/"
    "libnvidia-container/stable/deb/$(ARCH) /\n"
}


def state(host: Host) -> list[str]:
    return host.nsrun(STATE).stdout.splitlines()


@pytest.mark.parametrize("case", [apt("debian12"), dnf("el9"), ZYPPER], ids=lambda c: c.manager)
def test_a_refused_version_leaves_no_repository_and_no_key(lab: Lab, tmp_path: Path, case: Case) -> None:
    host = lab.host(case.distribution, gpu="h100", files=WRONG if case.manager == "apt" else {})
    host.nsrun("mkdir -p /etc/pki")
    me = Controller("ssh", tmp_path / "home")
    words = ("setup", "--yes", "--only", "toolkit", "--trust-key", lab.repo_fingerprint)
    before = state(host)

    refused = expect(me.gpunode(host, *words, "--toolkit", "1.99.0"), 1)
    assert "undone" in refused.stdout + refused.stderr
    assert state(host) == before
    assert packages(host, case) == {}

    expect(me.gpunode(host, *words), 0)
    assert packages(host, case)
    assert state(host) != before
    again = expect(me.gpunode(host, *words), 0)
    assert "no changes" in again.stdout
    other = me.gpunode(host, "plan", *words[2:], "--toolkit", OLD_TOOLKIT)
    assert "container toolkit repository is set up" in " ".join(other.stdout.split()), "its key file is believed"

    undone = expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert packages(host, case) == {}, undone.stdout
    assert state(host) == before, undone.stdout
