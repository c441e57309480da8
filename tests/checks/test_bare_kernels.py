"""A kernel without a module: where Ubuntu built the others, its own package is named, and no dkms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.model.facts import HostFacts, KernelTree
from gpunode.model.packages import PackageVersion
from gpunode.model.plan import MODULES_STEP
from gpunode.model.report import Finding
from tests.checks.test_agreement import finding, plan_of, report_of, sample

RELEASE, FOLLOWING = "6.8.0-51-generic", "6.8.0-60-generic"
NAMES = ("nvidia-driver-595-open", "nvidia-utils-595", "libnvidia-compute-595")
MODULES = "linux-modules-nvidia-595-open"


def of_ubuntu_drivers(*held: str, next_boot: str = FOLLOWING) -> HostFacts:
    """As `ubuntu-drivers install` leaves a host, and then a kernel that came alone, without its headers."""
    host = sample("ubuntu2404-driver-cve-archive")
    others = {name: one for name, one in host.packages.installed.items() if "580" not in name}
    driver = dict.fromkeys(NAMES, PackageVersion("595.91.07-0ubuntu0.24.04.1", "ii"))
    modules = {f"{MODULES}-generic": PackageVersion("6.8.0-51.52", "ii")}
    trees = (KernelTree(RELEASE, True, False, "x/nvidia.ko"), KernelTree(FOLLOWING, True, False, None))
    return replace(
        host,
        packages=replace(host.packages, installed={**others, **driver, **modules}, held=frozenset(held)),
        driver=replace(host.driver, loaded="595.91.07", installed="595.91.07", dkms=()),
        kernel=replace(host.kernel, trees=trees, next_boot=next_boot),
    )


def found(host: HostFacts) -> Finding:
    one = finding(report_of(host), "drv.dkms-next")
    assert "dkms" not in f"{one.summary} {one.evidence} {one.remedy.text} {one.otherwise.text}"
    assert "headers" not in f"{one.summary} {one.remedy.text}"
    return one


def test_setup_brings_the_next_kernel_its_module() -> None:
    host = of_ubuntu_drivers()
    remedy = found(host).remedy
    assert f"(manually: apt-get install {MODULES}-{FOLLOWING})" in remedy.text
    step = next(step for step in plan_of(host, remedy.command[2:]).steps if step.id == MODULES_STEP)
    assert step.title.startswith(f"upgrade {MODULES}-generic and its driver for {FOLLOWING}")


@pytest.mark.parametrize("next_boot", [FOLLOWING, RELEASE], ids=["boots next", "could be booted"])
def test_a_pin_that_keeps_it_away_is_removed_first(next_boot: str) -> None:
    by_hand = f"apt-mark unhold nvidia-utils-595; then apt-get install {MODULES}-{FOLLOWING}"
    assert by_hand in found(of_ubuntu_drivers("nvidia-utils-595", next_boot=next_boot)).remedy.text
