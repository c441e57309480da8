"""Distributions that are made from others: toolkit and engines everywhere, a driver where a row says whose it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, OsFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, DriverSource, Spec
from gpunode.planner.plan import make_plan

from .builders import L4, host, packages

CATALOG = load_catalog()
TOOLKIT = Spec(only=("toolkit", "runtime"))
MINT = OsFacts("linuxmint", "22.2", ("ubuntu", "debian"), "zara", "Linux Mint 22.2")
ZORIN = OsFacts("zorin", "18", ("ubuntu", "debian"), "noble", "Zorin OS 18")
POP = OsFacts("pop", "22.04", ("ubuntu", "debian"), "jammy", "Pop!_OS 22.04 LTS")
LMDE = OsFacts("linuxmint", "7", ("debian",), "gigi", "LMDE 7 (gigi)")
TUMBLEWEED = OsFacts("opensuse-tumbleweed", "20261120", ("opensuse", "suse"), "", "openSUSE Tumbleweed")
NOBARA = OsFacts("nobara", "44", ("fedora",), "", "Nobara Linux 44")


def commands(plan: Plan) -> list[str]:
    return [" ".join(a.argv) for s in plan.steps for a in s.actions if isinstance(a, Run)]


def on(os: OsFacts, manager: str = "apt") -> HostFacts:
    return replace(host(L4, packages=packages({}, manager=manager)), os=os)


@pytest.mark.parametrize(
    ("os", "manager"),
    [(MINT, "apt"), (LMDE, "apt"), (ZORIN, "apt"), (POP, "apt"), (NOBARA, "dnf5"), (TUMBLEWEED, "zypper")],
    ids=lambda x: getattr(x, "pretty_name", x),
)
def test_the_toolkit_is_planned_on_a_derivative(os: OsFacts, manager: str) -> None:
    plan = make_plan(on(os, manager), TOOLKIT, CATALOG)
    assert {"repo.toolkit", "toolkit.install"} <= {step.id for step in plan.steps}
    assert not [c for c in commands(plan) if "cuda/repos" in c]


@pytest.mark.parametrize(
    ("os", "manager", "way"),
    [
        (ZORIN, "apt", "the driver that its own archive has"),
        (NOBARA, "dnf5", "the driver that its own archive has"),
        (LMDE, "apt", "the driver that its own archive has"),
        (POP, "apt", "system76-driver-nvidia"),
        (TUMBLEWEED, "zypper", "nvidia-open-driver-G07-signed-cuda-kmp-default"),
    ],
    ids=lambda x: getattr(x, "pretty_name", x),
)
def test_the_driver_of_another_distribution_is_not_guessed(os: OsFacts, manager: str, way: str) -> None:
    with pytest.raises(UnsupportedHost, match="gets no driver from gpunode") as refused:
        make_plan(on(os, manager), Spec(), CATALOG)
    assert way in refused.value.remedy.text
    assert refused.value.remedy.command == ("gpunode", "setup", "--only", "toolkit,runtime")


def test_linux_mint_gets_the_packages_of_its_ubuntu_and_says_so() -> None:
    plan = make_plan(on(MINT), Spec(), CATALOG)
    assert [c for c in commands(plan) if "repos/ubuntu2404/x86_64/3bf863cc.pub" in c]
    assert plan.driver
    assert "Linux Mint 22 has the kernels and the archive of Ubuntu 24.04" in plan.driver.reasons
    assert plan.driver.source_title == "NVIDIA's repository for Ubuntu 24.04"
    archive = Spec(driver=DriverRequest.parse("595"), driver_source=DriverSource.DISTRO)
    choice = make_plan(on(MINT), archive, CATALOG).driver
    assert choice
    assert choice.source_title == "Ubuntu 24.04's own archive"


@pytest.mark.parametrize(
    ("os", "manager"),
    [
        (OsFacts("ubuntu", "25.04", ("debian",), "plucky", "Ubuntu 25.04"), "apt"),
        (OsFacts("kylin", "v4", ("debian",), "", "Kylin V4"), "apt"),
        (OsFacts("odd", "1", ("debian",), "", "Odd 1"), "dnf"),
        (OsFacts("odd", "1", ("debian",), "", "Odd 1"), "none"),
        (OsFacts("odd", "1", ("suse", "linux"), "", "Odd 1"), "zypper"),
    ],
    ids=["another release", "another family", "another manager", "no manager", "like none of the rows"],
)
def test_what_is_no_derivative_of_a_row_is_refused_as_before(os: OsFacts, manager: str) -> None:
    with pytest.raises(UnsupportedHost, match="is not a distribution gpunode installs"):
        make_plan(on(os, manager), TOOLKIT, CATALOG)
