"""Every distribution of the catalog with every architecture: a plan, or a refusal with its reason and a way on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpunode.catalog.distros import Distro
from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, OsFacts, SecurityFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, DriverSource, Flavour, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import host

CATALOG = load_catalog()
UNFILLED = re.compile(r"\{(branch|flavour|version|release|machine|major|minor|channel)\}")
MODELS = {
    a.name: next(c.id for c in CATALOG.models.values() if c.architecture == a.name) for a in CATALOG.architectures
}
ASKED = [(driver, Flavour.AUTO) for driver in ("auto", "470", "580", "595", "620", "580.178.04")]
ASKED += [("auto", Flavour.OPEN), ("auto", Flavour.PROPRIETARY)]
REQUESTS = [
    Spec(
        only=("driver",),
        driver=DriverRequest.parse(driver),
        flavour=flavour,
        driver_source=source,
        trust_keys=("A" * 40,),
    )
    for driver, flavour in ASKED
    for source in (DriverSource.AUTO, DriverSource.DISTRO, DriverSource.CUDA)
]


def box(distro: Distro, model: str, machine: str, secure: bool) -> HostFacts:
    version = next((v for v in distro.versions if v != "*"), "")
    os = OsFacts(distro.id, version, codename=next(iter(distro.codenames), ""), machine=machine)
    facts = host(model, os="ubuntu-24.04")
    packages = replace(facts.packages, manager=distro.manager)
    return replace(facts, os=os, packages=packages, security=SecurityFacts(secure_boot=secure))


@pytest.mark.parametrize("distro", [pytest.param(d, id=d.name) for d in CATALOG.distros])
def test_every_architecture_gets_a_plan_or_a_reason(distro: Distro) -> None:
    for model in MODELS.values():
        for machine, secure in (("x86_64", False), ("aarch64", True)):
            facts = box(distro, model, machine, secure)
            assert CATALOG.distro(facts.os) == distro
            for spec in REQUESTS:
                said(facts, spec)


def said(facts: HostFacts, spec: Spec) -> None:
    """Plans, or is refused; either way a person gets whole words."""
    try:
        plan: Plan | UnsupportedHost = make_plan(facts, spec, CATALOG)
    except UnsupportedHost as refused:
        plan = refused
    if isinstance(plan, UnsupportedHost):
        assert all((plan.problem, plan.evidence, plan.remedy)), plan.problem
        return
    words = [word for step in plan.steps for a in step.actions if isinstance(a, Run) for word in a.argv]
    assert [word for word in words if UNFILLED.search(word)] == []
    assert plan.driver
    assert plan.driver.confidence
    assert any(step.id == "driver.install" for step in plan.steps)


@pytest.mark.parametrize("architecture", [a.name for a in CATALOG.architectures if not a.refused])
def test_every_architecture_that_is_not_refused_gets_a_driver_on_a_current_system(architecture: str) -> None:
    for name in ("Ubuntu 24.04", "Debian 12", "Rocky Linux 9", "Fedora 44"):
        distro = next(d for d in CATALOG.distros if d.name == name)
        plan = make_plan(box(distro, MODELS[architecture], "x86_64", False), REQUESTS[0], CATALOG)
        assert "driver.install" in [step.id for step in plan.steps]
