"""Drivers that are known not to build on a kernel: refused where they would be installed, said where they are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.kernels import misfit
from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import DriverFacts, HostFacts, KernelTree
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, host, kernel, packages

CATALOG = load_catalog()
SEVEN = "7.0.9-1-generic"


def on(release: str, *, driver: str | None = None) -> HostFacts:
    facts = kernel(release=release, next_boot=release, trees=(KernelTree(release, True, True, None),))
    if driver is None:
        return host(L4, os="debian-12", kernel=facts)
    names = ("nvidia-open", "nvidia-kernel-open-dkms", "nvidia-driver-cuda")
    there = packages({**dict.fromkeys(names, f"{driver}-1"), "dkms": "3.0.10-8"}, held=names)
    return host(L4, os="debian-12", kernel=facts, packages=there, driver=DriverFacts())


def asking(words: str) -> Spec:
    return Spec(only=("driver",), driver=DriverRequest.parse(words))


@pytest.mark.parametrize(
    ("version", "release", "first"),
    [
        ("580.119.02", "7.0.9-1-cachyos", "580.142"),
        ("580.126.18", "7.0.1_1", "580.142"),
        ("580.142", "7.0.12_1", None),
        ("580.142", "7.1.0_1", "580.159.04"),
        ("580.159.03", "7.1.0_1", "580.159.04"),
        ("580.159.04", "7.1.0_1", None),
        ("580.126.18", "6.18.32-1", None),
        ("595.91.07", "7.1.0_1", None),
        ("weird", "7.0.1", None),
        ("580.126.18", "weird", None),
    ],
)
def test_what_builds_on_which_kernel(version: str, release: str, first: str | None) -> None:
    row = misfit(version, release)
    assert (row.first if row else None) == first


def test_of_a_branch_none_of_whose_versions_builds_none_is_named() -> None:
    row = misfit("550.163.01", "6.17.13-2-pve")
    assert row is not None
    assert row.sentence("550.163.01", "6.17.13-2-pve").endswith("none of branch 550 is known to")
    assert misfit("550.163.01", "6.12.57+deb13-amd64") is None


def test_a_driver_that_does_not_build_here_is_refused_before_anything_is_touched() -> None:
    with pytest.raises(UnsupportedHost, match=r"580\.126\.18 does not build on Linux 7\.0\.9-1-generic") as refused:
        make_plan(on(SEVEN), asking("580.126.18"), CATALOG)
    assert "use --driver 580, whose newest builds" in refused.value.remedy.text


@pytest.mark.parametrize(
    ("release", "asked"), [(SEVEN, "580"), (SEVEN, "580.178.04"), ("6.8.0-51-generic", "580.126.18"), (SEVEN, "auto")]
)
def test_what_builds_is_planned(release: str, asked: str) -> None:
    assert "driver.install" in [step.id for step in make_plan(on(release), asking(asked), CATALOG).steps]


def test_a_kept_driver_that_does_not_build_is_not_built_and_the_plan_says_so() -> None:
    plan = make_plan(on(SEVEN, driver="580.126.18"), asking("580.126.18"), CATALOG)
    assert "driver.build" not in [step.id for step in plan.steps]
    assert "no module is built: driver 580.126.18 does not build on Linux 7.0.9-1-generic" in " ".join(
        one.text for one in plan.kept
    )
    older = make_plan(on("6.8.0-51-generic", driver="580.126.18"), asking("580.126.18"), CATALOG)
    assert "driver.build" in [step.id for step in older.steps]


@pytest.mark.parametrize(("version", "planned"), [("615.71.09", True), ("610.57.04", False)])
def test_cuda_drivers_is_an_empty_package_from_615_on(version: str, planned: bool) -> None:
    facts = replace(host(L4, os="debian-12"), packages=packages({"cuda-drivers": f"{version}-1"}))
    plan = make_plan(facts, asking("auto"), CATALOG)
    assert ("driver.install" in [step.id for step in plan.steps]) is planned
