"""apt, dnf 4, dnf5, zypper and pacman, the real ones: install, hold, an admin's upgrade, gpunode's upgrade, removal."""

from __future__ import annotations

from pathlib import Path

import pytest

from .lab import Lab
from .product_runs import Controller, expect
from .repositories import web_root
from .resolver_cases import PACMAN, ZYPPER, Case, apt, dnf, go_back, move_on, packages, remove, setup
from .stubs import rpms

CASES = (apt("debian12"), apt("debian13"), apt("debian-sid"), dnf("el9"), dnf("fedora42"), ZYPPER, PACMAN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.distribution)
def test_the_whole_life_of_the_set(lab: Lab, tmp_path: Path, case: Case) -> None:
    go_back(lab, case)
    host = lab.host(case.distribution, gpu="h100")
    me = Controller("ssh", tmp_path / "home")
    before = packages(host, case)

    expect(me.gpunode(host, *setup(lab, me, host, *case.first)), 0)
    first = packages(host, case)
    assert first.items() >= dict(case.versions).items()
    assert host.nsrun("nvidia-smi -L").returncode == 0
    driver = {
        v.split("-")[0] for n, v in first.items() if "container" not in n and "pinning" not in n and "kmp" not in n
    }
    assert len(driver) == 1, first

    # An upgrade of everything else still works, and leaves the whole set alone.
    move_on(lab, case, web_root(lab.trust))
    for command in filter(None, (case.upgrade, case.automatic)):
        upgrade = host.nsrun(command)
        assert upgrade.returncode == 0, upgrade.stdout + upgrade.stderr
        assert packages(host, case) == first, upgrade.stdout
    again = expect(me.gpunode(host, *setup(lab, me, host, *case.first)), 0)
    assert "no changes" in again.stdout

    if case.then:
        expect(me.gpunode(host, *setup(lab, me, host, *case.then)), 0)
        assert packages(host, case).items() >= dict(case.later).items()

    remove(host, case)
    assert packages(host, case) == before
    assert "nvidia" not in host.nsrun(case.held).stdout


def test_a_mirror_that_lags_behind_a_known_cve(lab: Lab, tmp_path: Path) -> None:
    """What it has is installed, once, and the reason is said; when it has caught up the next setup upgrades."""
    go_back(lab, ZYPPER, 2)
    host = lab.host(ZYPPER.distribution, gpu="h100")
    me = Controller("ssh", tmp_path / "home")

    done = expect(me.gpunode(host, *setup(lab, me, host, *ZYPPER.first)), 0)
    vulnerable, mended = rpms.SUSE_VERSIONS[0], rpms.SUSE_VERSIONS[1]
    assert packages(host, ZYPPER)["nvidia-compute-utils-G06"] == vulnerable
    assert "the repository that this host uses has no newer one of branch 580" in " ".join(done.stdout.split())

    move_on(lab, ZYPPER, web_root(lab.trust), mended)
    expect(me.gpunode(host, *setup(lab, me, host, *ZYPPER.first)), 0)
    assert packages(host, ZYPPER)["nvidia-compute-utils-G06"] == mended
