"""A driver with a known CVE is upgraded inside its branch, or kept, and the plan says why it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.driver_cves import has_fix, known_cve
from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts, HostFacts, JournalFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, DriverSource, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, host, packages

CATALOG = load_catalog()
SET = ("nvidia-open", "nvidia-kernel-open-dkms", "nvidia-driver-cuda", "libnvidia-ml1")
CVE = "595.58.03 has CVE-2026-47600, fixed in 595.91.07 (NVIDIA's bulletin 5861)"


def driver_at(version: str, *, names: tuple[str, ...] = SET, busy: tuple[str, ...] = (), **more: Any) -> HostFacts:
    journal = more.pop("journal", JournalFacts())
    there = packages(dict.fromkeys(names, f"{version}-1") | more.pop("others", {}), **more)
    driver = DriverFacts(version, "open", version, "open", busy=busy)
    return host(L4, os="debian-12", packages=there, driver=driver, journal=journal)


def plan_of(facts: HostFacts, **spec: Any) -> Plan:
    return make_plan(facts, replace(Spec(only=("driver",)), **spec), CATALOG)


def kept(plan: Plan) -> str:
    assert "driver.install" not in [step.id for step in plan.steps]
    return next(one.text for one in plan.kept if one.id == "driver.install")


def test_a_vulnerable_driver_is_upgraded_in_its_branch() -> None:
    """580 stays 580, though 595 is what a bare host would get."""
    plan = plan_of(driver_at("580.126.09"))
    assert plan.driver is not None
    assert (plan.driver.branch, plan.driver.flavour, plan.driver.kept) == (580, "open", False)
    step = next(step for step in plan.steps if step.id == "driver.install")
    assert step.why == "580.126.09 has CVE-2026-47600, fixed in 580.178.04 (NVIDIA's bulletin 5861)"
    argvs = [action.argv for action in step.actions if isinstance(action, Run)]
    assert any("nvidia-driver-pinning-580" in argv for argv in argvs)


def test_a_driver_without_a_known_cve_stays() -> None:
    assert kept(plan_of(driver_at("595.91.07"))) == "driver 595.91.07 with open kernel modules"


@pytest.mark.parametrize(
    ("facts", "spec", "why"),
    [
        (driver_at("595.58.03", held=["nvidia-open"]), {},
         "it is pinned and not by gpunode; apt-mark unhold nvidia-open removes the pin"),
        (driver_at("595.58.03", held=["nvidia-*"]), {}, "apt-mark unhold 'nvidia-*' removes the pin"),
        (driver_at("595.58.03", others={"nvidia-driver-pinning-595.58.03": "1"}), {},
         "nvidia-driver-pinning-595.58.03 pins it, and not by gpunode; apt-get purge nvidia-driver-pinning-595.58.03"),
        (driver_at("595.58.03"), {"driver": DriverRequest.parse("595.58.03")}, "--driver 595.58.03 names it"),
        (driver_at("595.58.03", busy=("4242 python3",)), {}, "4242 python3 uses the GPUs; drain the node"),
        (driver_at("595.58.03"), {"driver_source": DriverSource.LOCAL, "mirror": "file:///srv/nvidia/"},
         "its version is that of the local repository"),
    ],
    ids=["pinned", "pinned by pattern", "one version pinned", "named", "in use", "local"],
)  # fmt: skip
def test_a_vulnerable_driver_is_kept_with_the_reason(facts: HostFacts, spec: dict[str, Any], why: str) -> None:
    text = kept(plan_of(facts, **spec))
    assert text.startswith(f"driver 595.58.03 with open kernel modules; {CVE}; not upgraded, since ")
    assert why in text


def test_a_mirror_that_lags_behind_is_asked_once_a_run() -> None:
    done = frozenset({"driver.install"})
    plan = make_plan(driver_at("595.58.03"), Spec(only=("driver",)), CATALOG, done)
    assert "the repository that this host uses has no newer one of branch 595; the next setup asks again" in kept(plan)


def test_a_distributions_own_driver_waits_for_the_distribution() -> None:
    facts = driver_at("535.261.03", names=("nvidia-open-kernel-dkms", "libnvidia-ml1"))
    plan = plan_of(facts)
    assert "Debian 12's own archive; apt-get install nvidia-open-kernel-dkms takes the newest there" in kept(plan)
    assert "driver.hold" not in [step.id for step in plan.steps], "a pin would keep the fix away"


def test_a_branch_that_the_repository_has_no_more_is_kept() -> None:
    text = kept(plan_of(driver_at("570.195.03"), driver=DriverRequest.parse("570")))
    assert "570.195.03 has CVE-2025-33219" in text
    assert "NVIDIA's repository for Debian 12 has no newer one of branch 570" in text


@pytest.mark.parametrize(
    "facts",
    [
        driver_at("595.58.03", held=SET, journal=JournalFacts(pinned=frozenset(SET))),
        driver_at("595.58.03", busy=("77 nvidia-persiste",)),
    ],
    ids=["gpunode's own pin", "the driver's own service"],
)
def test_what_is_gpunodes_or_the_drivers_own_keeps_no_vulnerable_driver(facts: HostFacts) -> None:
    assert "driver.install" in [step.id for step in plan_of(facts).steps]


def test_a_program_in_use_does_not_keep_it_from_who_allows_that() -> None:
    plan = plan_of(driver_at("595.58.03", busy=("4242 python3",)), allow_gpu_in_use=True)
    assert "driver.install" in [step.id for step in plan.steps]


@pytest.mark.parametrize(
    ("name", "version", "fixed"),
    [("Debian 12", "580.126.09", True), ("Debian 12", "570.195.03", False), ("CentOS 7", "535.129.03", False),
     ("openSUSE Leap 15.6", "580.126.09", True)],
)  # fmt: skip
def test_a_repository_has_the_fix(name: str, version: str, fixed: bool) -> None:
    """CentOS 7's has 535 and nothing newer than its own end."""
    cve = known_cve(version)
    assert cve is not None
    distro = next(one for one in CATALOG.distros if one.name == name)
    assert has_fix(CATALOG, distro, cve, "proprietary") is fixed
