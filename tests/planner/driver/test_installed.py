"""The driver that is on a host already: which packages stand for it, and where it came from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.facts import DriverFacts, HostFacts, KernelTree
from gpunode.model.installed import lead_package
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, RELEASE, host, kernel, packages

CATALOG = load_catalog()
DRIVER = Spec(only=("driver",))
UBUNTU = "595.91.07-1ubuntu1"
OLDER = "580.178.04-1ubuntu1"
DEBIAN = "595.91.07-1"
BY_KERNEL = DriverFacts("595.91.07", "open", "595.91.07", "open")


def having(*names: str, version: str, os: str = "ubuntu-24.04", driver: DriverFacts = BY_KERNEL) -> HostFacts:
    there = packages(dict.fromkeys(names, version) | {"linux-headers-generic": "6.8.0-51.52", "dkms": "3.0.11"})
    return host(L4, os=os, packages=there, driver=driver)


# What NVIDIA's driver installation guide (595) has installed where the desktop or the compute part is left out.
PARTS = [
    ("ubuntu-24.04", UBUNTU, ("libnvidia-compute", "nvidia-dkms-open"), "nvidia-dkms-open"),
    ("ubuntu-24.04", UBUNTU, ("libnvidia-compute", "nvidia-dkms"), "nvidia-dkms"),
    ("ubuntu-24.04", UBUNTU, ("nvidia-driver-open", "nvidia-dkms-open"), "nvidia-driver-open"),
    ("ubuntu-24.04", OLDER, ("libnvidia-compute-580", "nvidia-dkms-580-open"), "nvidia-dkms-580-open"),
    ("ubuntu-24.04", OLDER, ("nvidia-driver-580-open", "nvidia-open-580"), "nvidia-open-580"),
    ("ubuntu-24.04", OLDER, ("nvidia-driver-580", "cuda-drivers-580"), "cuda-drivers-580"),
    ("debian-12", DEBIAN, ("nvidia-driver-cuda", "nvidia-kernel-open-dkms"), "nvidia-kernel-open-dkms"),
    ("debian-12", DEBIAN, ("nvidia-driver", "nvidia-kernel-open-dkms"), "nvidia-kernel-open-dkms"),
]


@pytest.mark.parametrize(("os", "version", "names", "lead"), PARTS)
def test_a_part_of_the_driver_is_one_of_known_origin(os: str, version: str, names: tuple[str, ...], lead: str) -> None:
    facts = having(*names, version=version, os=os)
    plan = make_plan(facts, DRIVER, CATALOG)
    assert lead_package(facts) == lead
    assert plan.driver is not None
    assert (plan.driver.kept, plan.driver.foreign) == (True, None)
    changed = make_plan(facts, replace(DRIVER, driver=DriverRequest("branch", branch=580)), CATALOG).driver
    assert changed is not None
    assert changed.branch == 580


@pytest.mark.parametrize(
    ("os", "version", "names"),
    [
        ("ubuntu-24.04", OLDER, ("libnvidia-compute-580", "nvidia-dkms-580-open")),
        ("debian-12", "580.178.04-1", ("nvidia-driver-cuda", "nvidia-kernel-open-dkms")),
    ],
)
def test_a_kernel_without_its_module_gets_it_built_and_no_newer_branch(
    os: str, version: str, names: tuple[str, ...]
) -> None:
    """The module for the kernel before it is all that the disk shows of the driver."""
    newer = "6.8.0-60-generic"
    built = KernelTree(RELEASE, True, True, f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko")
    facts = replace(
        having(*names, version=version, os=os, driver=DriverFacts()),
        kernel=kernel(release=newer, trees=(built, KernelTree(newer, True, True, None)), next_boot=newer),
    )
    plan = make_plan(facts, DRIVER, CATALOG)
    assert plan.driver is not None
    assert (plan.driver.branch, plan.driver.flavour, plan.driver.kept) == (580, "open", True)
    assert "driver.build" in [step.id for step in plan.steps]
