"""A driver that is not pinned, or only in part: setup pins it where the finding says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.model.plan import HOLD_STEP
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
