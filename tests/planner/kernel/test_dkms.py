"""Packages that build a module: whose version leads, and the ways out when it does not build."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts
from gpunode.model.packages import AptArchive
from gpunode.model.plan import Step
from gpunode.model.spec import DriverRequest, DriverSource, Flavour, Spec
from gpunode.planner.kernel.dkms import DOES_NOT_BUILD
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, host, packages

CATALOG = load_catalog()
ARCHIVE = AptArchive("http://mirror.example/debian", "bookworm", ("main", "contrib", "non-free", "non-free-firmware"))
CONFIG = ("APT_CONFIG", "/run/gpunode/module.conf")
MODULES = {Flavour.OPEN: "nvidia-open-kernel-dkms", Flavour.PROPRIETARY: "nvidia-kernel-dkms"}


def runs(spec: Spec, os: str) -> list[Run]:
    plan = make_plan(host(L4, os=os, packages=packages({}, archives=(ARCHIVE,))), spec, CATALOG)
    step = next(s for s in plan.steps if s.id == "driver.install")
    return [action for action in step.actions if isinstance(action, Run)]


@pytest.mark.parametrize("flavour", list(MODULES), ids=str)
@pytest.mark.parametrize("os", ["debian-12", "debian-13"])
def test_in_debians_archive_the_module_tells_the_version_of_all(os: str, flavour: Flavour) -> None:
    found = runs(Spec(driver_source=DriverSource.DISTRO, flavour=flavour), os)

    lead = next(n for n, run in enumerate(found) if MODULES[flavour] in run.argv and "module-first" in run.stdin)
    asking = [n for n, run in enumerate(found) if CONFIG in run.env]
    assert asking == [lead + 1, lead + 2, lead + 3], "ask, download and install, right after it"
    assert MODULES[flavour] in found[asking[-1]].packages


@pytest.mark.parametrize("os", ["debian-12", "ubuntu-24.04"])
def test_elsewhere_the_repositorys_own_pin_does(os: str) -> None:
    assert not any(CONFIG in run.env for run in runs(Spec(), os))


@pytest.mark.parametrize(
    ("source", "way"),
    [(DriverSource.DISTRO, "--driver-source cuda takes NVIDIA's own"), (DriverSource.CUDA, "--driver takes a newer")],
    ids=["from Debian to NVIDIA", "to another of NVIDIA's branches"],
)
def test_a_module_that_does_not_build_has_a_way_out(source: DriverSource, way: str) -> None:
    *_, install = (run for run in runs(Spec(driver_source=source), "debian-12") if run.packages)
    assert way in dict(install.remedies)[DOES_NOT_BUILD]
    assert install.argv[3:5] == ("apt-get", "install")
    assert install.description.startswith("apt-get install nvidia-"), "a person still sees the command"


def test_a_half_configured_module_can_be_removed_by_hand() -> None:
    broken = packages({"nvidia-open-kernel-dkms": "550.163.01-2"}, broken=["nvidia-open-kernel-dkms"])
    plan = make_plan(host(L4, os="debian-13", packages=broken), Spec(), CATALOG)
    (step,) = (s for s in plan.steps if s.id == "packages.repair")
    assert isinstance(step, Step)
    (run,) = (action for action in step.actions if isinstance(action, Run))
    assert dict(run.remedies)[DOES_NOT_BUILD].startswith("apt-get remove nvidia-open-kernel-dkms lets apt work again")
    assert "dpkg --configure -a" in run.stdin


def test_debians_helpers_have_versions_of_their_own_and_are_no_part_of_the_set() -> None:
    there = {
        "nvidia-open-kernel-dkms": "535.309.01-1",
        "libnvidia-ml1": "535.309.01-1",
        "nvidia-modprobe": "535.330.01-0+deb12u1",
        "nvidia-persistenced": "535.171.04-1~deb12u1",
        "dkms": "3.0.10-8",
    }
    facts = host(
        L4,
        os="debian-12",
        packages=packages(there, held=["nvidia-open-kernel-dkms"], archives=(ARCHIVE,)),
        driver=DriverFacts(None, None, "535.309.01", "open"),
    )
    plan = make_plan(facts, Spec(driver=DriverRequest.parse("535"), driver_source=DriverSource.DISTRO), CATALOG)
    (step,) = (s for s in plan.steps if s.id == "driver.hold")
    (hold,) = (action for action in step.actions if isinstance(action, Run))
    assert hold.argv == ("apt-mark", "hold", "libnvidia-ml1", "nvidia-open-kernel-dkms")
