"""A manual step: the run ends with exit 6 and the commands to run, every time until it is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import ExitCode
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.report import RunReport
from gpunode.model.spec import Spec
from gpunode.render.machine import plan_from_json, plan_to_json
from gpunode.render.plan_text import plan_text
from gpunode.render.run_text import run_text
from tests.apply.machine import Machine
from tests.test_converge import OK, way

WORDS = "containerd must be started anew: pkill -x containerd; /usr/bin/containerd &"
STEP = Step("containerd.default", "title", "why", (OK,), by_hand=WORDS)
WRITTEN = Plan("testhost", Spec(), "then", steps=(STEP,))
WAITING = Plan("testhost", Spec(), "then", kept=(Kept("containerd.default", "right, not read", WORDS),))


@pytest.mark.parametrize("plan", [WRITTEN, WAITING], ids=["the file is written now", "it was written before"])
def test_the_run_ends_with_exit_6_and_the_commands(tmp_path: Path, plan: Plan) -> None:
    report = way(Machine(tmp_path), [plan]).run()
    assert (report.code, report.by_hand) == (ExitCode.REBOOT_NEEDED, (WORDS,))
    assert report.reboot is None
    text = " ".join(run_text(report).split())
    assert "manual step required" in text
    assert WORDS in text
    assert "reboot" not in text


def test_nothing_is_written_where_nothing_is_left_to_do_here(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert way(machine, [WAITING]).run().code is ExitCode.REBOOT_NEEDED
    assert list(machine.root.iterdir()) == []


def test_a_reboot_does_it_as_well() -> None:
    """Both are needed: the reboot starts the daemon anew, and only it is asked for."""
    assert "reboot once" in plan_text(replace(WRITTEN, reboot="nouveau holds a GPU"))


def test_the_plan_shows_the_commands_and_keeps_them_when_it_is_saved() -> None:
    assert WORDS in " ".join(plan_text(WRITTEN).split())
    assert WORDS in " ".join(plan_text(WAITING).split())
    assert "no changes: this host matches the spec" not in plan_text(WAITING)
    assert plan_from_json(plan_to_json(WAITING)) == WAITING
    assert not WAITING.empty


def test_a_report_without_them_reads_as_before() -> None:
    assert "manual" not in run_text(RunReport("gpu07", code=ExitCode.DONE))
