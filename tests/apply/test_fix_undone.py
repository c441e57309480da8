"""What `check --fix` switches on, its undo switches off again: through the real executor and the real journal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.journal.past import read_past
from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.plan import Plan
from gpunode.model.report import StepStatus
from gpunode.planner.undo.plan import undo_plan
from tests.apply.machine import Machine
from tests.apply.test_undo import carry_out
from tests.checks.test_fixes import OFF, plan_of

UNIT = "nvidia-persistenced.service"
ON = ServiceFacts("loaded", "active", "running", "enabled")


def off(active: str, enabled: str) -> HostFacts:
    """The node whose persistenced was left like this."""
    return replace(OFF, services={**OFF.services, UNIT: ServiceFacts("loaded", active, "dead", enabled)})


def commands(plan: Plan) -> list[tuple[str, ...]]:
    return [action.argv for step in plan.steps for action in step.actions if isinstance(action, Run)]


@pytest.mark.parametrize(
    ("before", "back"),
    [
        (off("inactive", "disabled"), ("systemctl", "disable", "--now", UNIT)),
        (off("active", "disabled"), ("systemctl", "disable", UNIT)),
    ],
    ids=["neither enabled nor running", "running, and not enabled"],
)
def test_a_unit_that_fix_enabled_is_disabled_by_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: HostFacts, back: tuple[str, ...]
) -> None:
    machine, said = Machine(tmp_path), tmp_path / "said"
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir(exist_ok=True)
    systemctl.write_text(f'#!/bin/sh\necho "systemctl $*" >>{said}\n')
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    plan = plan_of(before)
    assert plan is not None
    assert carry_out(machine, "r1", plan, before) is StepStatus.DONE

    mended = replace(before, services={**before.services, UNIT: ON})
    undo = undo_plan(mended, read_past(machine), load_catalog())
    assert commands(undo) == [back]
    assert carry_out(machine, "u1", undo, mended) is StepStatus.DONE
    assert said.read_text().splitlines() == [f"systemctl enable --now {UNIT}", " ".join(back)]
    assert read_past(machine).services == {}, "nothing is left to undo"


def test_what_somebody_disabled_meanwhile_is_left_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, before = Machine(tmp_path), off("inactive", "disabled")
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin" / "systemctl").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    plan = plan_of(before)
    assert plan is not None
    carry_out(machine, "r1", plan, before)
    assert undo_plan(before, read_past(machine), load_catalog()).steps == ()
