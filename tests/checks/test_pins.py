"""A driver that is not pinned, or only in part: setup pins it where the finding says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.model.facts import HostFacts, JournalFacts
from gpunode.model.plan import HOLD_STEP, UNHOLD_STEP
from gpunode.model.report import NotApplicable
from tests.checks.test_agreement import finding, plan_of, report_of, sample


@pytest.mark.parametrize(
    ("id", "change"),
    [
        ("os.unattended-upgrades", {"auto_upgrade": True}),
        ("os.held-packages", {"held": frozenset({"nvidia-open"})}),
    ],
)
def test_setup_pins_what_is_loose(id: str, change: dict[str, Any]) -> None:
    host = sample("debian12-upgrade")
    host = replace(host, packages=replace(host.packages, **change))
    command = finding(report_of(host), id).remedy.command
    assert command[:2] == ("gpunode", "setup")
    assert HOLD_STEP in {step.id for step in plan_of(host, command[2:]).steps}


def test_where_setup_pins_nothing_the_remedy_is_another() -> None:
    host = sample("ubuntu2404-dgx")
    host = replace(host, packages=replace(host.packages, auto_upgrade=True))
    found = finding(report_of(host), "os.unattended-upgrades")
    assert found.remedy.command == ()
    assert "exclude them from the automatic upgrades" in found.remedy.text


def signed(*held: str, **more: Any) -> HostFacts:
    """A driver whose modules are Ubuntu's own."""
    host = sample("ubuntu2404-driver-cve-archive")
    return replace(host, packages=replace(host.packages, held=frozenset(held), auto_upgrade=True), **more)


NAMES = ("libnvidia-compute-580-server", "nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server")


def test_no_pin_is_asked_for_where_the_modules_follow_the_kernel() -> None:
    results = report_of(signed()).results
    loose = results["os.unattended-upgrades"].outcome
    assert isinstance(loose, NotApplicable)
    assert "(linux-modules-nvidia-580-server-open-*) come with each kernel" in loose.reason
    assert results["os.held-packages"].outcome is None
    assert report_of(signed("linux-image-generic", *NAMES)).results["os.held-packages"].outcome is None


@pytest.mark.parametrize("held", [NAMES, NAMES[:1]], ids=["all", "one"])
def test_a_pin_that_keeps_the_modules_away_is_named_with_what_removes_it(held: tuple[str, ...]) -> None:
    theirs = finding(report_of(signed(*held)), "os.held-packages")
    assert theirs.summary.startswith(f"the next kernel comes without a module: {held[0]}")
    assert theirs.remedy.text == f"apt-mark unhold {' '.join(held)}"
    host = signed(*held, journal=JournalFacts(pinned=frozenset(held)))
    command = finding(report_of(host), "os.held-packages").remedy.command
    assert command[:2] == ("gpunode", "setup")
    assert UNHOLD_STEP in {step.id for step in plan_of(host, command[2:]).steps}
