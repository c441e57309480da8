"""A toolkit with a known CVE is upgraded; where an admin pinned or named it, it is kept and the plan says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.facts import HostFacts, JournalFacts
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import Spec, ToolkitRequest
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, host, packages

CATALOG = load_catalog()
NAMES = CATALOG.toolkit.packages


def toolkit_at(version: str, *, held: bool = False, journal: JournalFacts | None = None) -> HostFacts:
    there = packages(dict.fromkeys(NAMES, f"{version}-1"), held=NAMES if held else ())
    return host(L4, os="debian-12", packages=there, journal=journal or JournalFacts())


def outcome(facts: HostFacts, asked: str = "auto") -> Step | Kept:
    spec = replace(Spec(), toolkit=ToolkitRequest.parse(asked), trust_keys=("A" * 40,), only=("toolkit",))
    plan = make_plan(facts, spec, CATALOG)
    outcomes: tuple[Step | Kept, ...] = (*plan.steps, *plan.kept)
    return next(one for one in outcomes if one.id == "toolkit.install")


@pytest.mark.parametrize(("version", "upgraded"), [
    ("1.17.8", True), ("1.19.0", True), ("1.19.1", False),
    ("1.19.0~rc.4", True), ("1.19.1~rc.1", True), ("1.20.0~rc.1", False),
])  # fmt: skip
def test_a_vulnerable_toolkit_is_upgraded(version: str, upgraded: bool) -> None:
    found = outcome(toolkit_at(version))
    if not upgraded:
        assert found == Kept("toolkit.install", f"container toolkit {version}")
        return
    assert isinstance(found, Step)
    assert found.why == f"{version} is installed and has CVE-2026-24260, fixed in 1.19.1"
    assert "install nvidia-container-toolkit 1.20.1" in found.title


def test_a_vulnerable_toolkit_that_an_admin_pinned_is_kept_with_the_reason() -> None:
    found = outcome(toolkit_at("1.19.0", held=True))
    assert isinstance(found, Kept)
    assert found.text.startswith(
        "container toolkit 1.19.0 has CVE-2026-24260, fixed in 1.19.1; not upgraded, since it is pinned and not by "
        "gpunode; apt-mark unhold libnvidia-container-tools"
    )


@pytest.mark.parametrize(
    "journal",
    [JournalFacts(packages=frozenset(NAMES)), JournalFacts(pinned=frozenset(NAMES))],
    ids=["it installed them", "it pinned what was there"],
)
def test_gpunodes_own_pin_keeps_no_vulnerable_toolkit(journal: JournalFacts) -> None:
    found = outcome(toolkit_at("1.19.0", held=True, journal=journal))
    assert isinstance(found, Step)
    assert found.why == "1.19.0 is installed and pinned and has CVE-2026-24260, fixed in 1.19.1"


def test_a_vulnerable_toolkit_that_is_asked_for_is_kept_with_the_reason() -> None:
    found = outcome(toolkit_at("1.19.0"), "1.19.0")
    assert found == Kept(
        "toolkit.install",
        "container toolkit 1.19.0 has CVE-2026-24260, fixed in 1.19.1; not upgraded, since --toolkit 1.19.0 names it",
        beware=True,
    )
