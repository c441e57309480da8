"""The driver that is on a host already: which packages stand for it, and where it came from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.facts import DriverFacts, HostFacts, KernelTree
from gpunode.model.installed import installed_source, lead_package
from gpunode.model.spec import DriverRequest, DriverSource, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, RELEASE, host, kernel, packages

CATALOG = load_catalog()
DRIVER = Spec(only=("driver",))
UBUNTU = "595.91.07-1ubuntu1"
OLDER = "580.178.04-1ubuntu1"
DEBIAN = "595.91.07-1"
LTS = DriverFacts("580.178.04", "open", "580.178.04", "open")
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


@pytest.mark.parametrize(
    ("version", "name", "source"),
    [
        ("580.95.05-1ubuntu1", "nvidia-driver-580-open", "cuda"),
        ("580.95.05-0ubuntu1", "nvidia-driver-580-open", "distro"),
        ("580.95.05-0ubuntu0.24.04.2", "nvidia-driver-580-open", "distro"),
        ("580.95.05-0ubuntu1", "nvidia-open-580", "cuda"),
        ("580.95.05-0ubuntu1", "cuda-drivers-580", "cuda"),
        ("580.178.04-1ubuntu1", "nvidia-dkms-580", "cuda"),
        ("580.178.04-0ubuntu0.22.04.1", "nvidia-dkms-580-server-open", "distro"),
        ("590.48.01-0ubuntu1", "nvidia-dkms-open", "cuda"),
        ("535.261.03-1~deb12u1", "nvidia-driver", "distro"),
        ("550.163.01-2", "nvidia-driver", "distro"),
        ("595.91.07-1", "nvidia-driver", "cuda"),
        ("535.261.03-1~deb12u1", "nvidia-kernel-dkms", "distro"),
        ("580.178.04-1", "nvidia-kernel-dkms", "cuda"),
        ("535.261.03-1~deb12u1", "nvidia-open-kernel-dkms", "distro"),
        ("3:580.95.05-1.el9", "nvidia-driver", "cuda"),
        ("3:580.95.05-1.fc42", "akmod-nvidia", "distro"),
        ("595.91.07-1", "nvidia-open-dkms", "distro"),  # Arch
        ("580.95.05-1", "nvidia-dkms", "distro"),
    ],
)
def test_a_name_that_two_repositories_have_tells_its_source_by_its_revision(
    version: str, name: str, source: str
) -> None:
    assert installed_source(having(name, version=version)) == source


RPMS = ("kmod-nvidia-open-dkms", "nvidia-driver", "nvidia-driver-cuda", "nvidia-driver-libs")


def of_rpms(*names: str, os: str = "rocky-9") -> HostFacts:
    there = packages(dict.fromkeys(names, "3:580.178.04-1.el9") | {"gnupg2": "2.3", "dkms": "3.2"}, manager="dnf")
    return replace(host(L4, os=os), packages=there, driver=LTS)


@pytest.mark.parametrize(
    "facts",
    [
        having("nvidia-open-580", "nvidia-driver-580-open", version=OLDER, driver=LTS),
        having("nvidia-driver", "nvidia-kernel-open-dkms", version=DEBIAN, os="debian-12"),
        of_rpms(*RPMS),
    ],
    ids=["Ubuntu", "Debian", "a module's stream"],
)
def test_a_driver_of_nvidias_repository_is_no_other_source(facts: HostFacts) -> None:
    """It is kept where that source is asked for, and another branch of it replaces it as one set."""
    wanted = replace(DRIVER, driver_source=DriverSource.CUDA)
    plan = make_plan(facts, wanted, CATALOG)
    assert plan.driver is not None
    assert (plan.driver.kept, plan.driver.source) == (True, "cuda")
    other = make_plan(facts, replace(wanted, driver=DriverRequest("branch", branch=590)), CATALOG)
    steps = [step.id for step in other.steps]
    assert "driver.install" in steps
    assert "driver.replace" not in steps


def test_a_distribution_without_a_driver_is_not_named_as_its_source() -> None:
    """RPM Fusion's, which Rocky Linux has nothing to do with."""
    facts = of_rpms("akmod-nvidia", "xorg-x11-drv-nvidia-cuda")
    plan = make_plan(facts, replace(DRIVER, driver_source=DriverSource.CUDA), CATALOG)
    (step,) = [step for step in plan.steps if step.id == "driver.replace"]
    assert step.why == "they come from another repository than NVIDIA's, and a host has one source"
