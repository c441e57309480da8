"""What gpunode.node.setup says of what gpunode says: done, a reboot, a step for a person, or a refusal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import ExitCode
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.report import RunReport
from gpunode.model.spec import Spec

from .ansible_module import play

RESTART = "systemctl restart docker, when its containers may stop"
STEP = Step("docker.default", "Docker", "it is not the default", (), ())
NOTHING = Plan("gpu01", Spec(), "0" * 64)
REFUSED = Kept("docker.default", "/etc/docker/daemon.json does not parse", refused=True, evidence="line 3")


def report(plan: Plan, code: ExitCode, *, reboot: str | None = None) -> RunReport:
    return RunReport("gpu01", (), replace(plan, steps=()), reboot=reboot, code=code, by_hand=plan.by_hand)


def test_a_host_that_matches_is_left_alone(tmp_path: Path) -> None:
    module, asked = play(tmp_path, NOTHING, None)
    assert (module.said, asked) == (
        {"changed": False, "steps": [], "reboot_required": False, "manual_steps": []},
        ["plan"],
    )
    assert (module.failed, module.warned) == (None, [])


@pytest.mark.parametrize("check", [False, True])
def test_a_restart_that_is_left_to_a_person_is_said_and_is_no_reboot(tmp_path: Path, check: bool) -> None:
    kept = replace(NOTHING, kept=(Kept("docker.default", "matches the spec", RESTART),))
    module, asked = play(tmp_path / "kept", kept, None, check=check)
    assert asked == ["plan"]
    assert (module.said["changed"], module.said["reboot_required"]) == (False, False)
    assert module.said["manual_steps"] == [RESTART]
    assert module.warned == [f"left to you: {RESTART}"]

    first = replace(NOTHING, steps=(replace(STEP, by_hand=RESTART),))
    module, asked = play(tmp_path / "first", first, report(first, ExitCode.REBOOT_NEEDED), check=check)
    assert asked == (["plan"] if check else ["plan", "setup"])
    assert (module.said["changed"], module.said["reboot_required"]) == (True, False)
    assert module.said["manual_steps"] == [RESTART]


def test_a_reboot_that_goes_on_with_it_is_asked_for(tmp_path: Path) -> None:
    plan = replace(NOTHING, steps=(STEP,), reboot="a module is to be loaded")
    module, _ = play(tmp_path, plan, report(plan, ExitCode.REBOOT_NEEDED, reboot="a module is to be loaded"))
    assert (module.said["reboot_required"], module.said["manual_steps"]) == (True, [])


def test_a_reboot_with_somebody_at_the_console_is_left_to_them(tmp_path: Path) -> None:
    plan = replace(NOTHING, steps=(STEP,), reboot="the key is enrolled", console="choose Enroll MOK")
    module, _ = play(tmp_path, plan, report(plan, ExitCode.REBOOT_NEEDED, reboot="the key is enrolled"))
    assert module.said["reboot_required"] is False
    assert module.said["manual_steps"] == ["choose Enroll MOK"]


def test_what_is_refused_fails_after_the_rest_is_done(tmp_path: Path) -> None:
    plan = replace(NOTHING, steps=(replace(STEP, id="driver.install"),), kept=(REFUSED,))
    module, asked = play(tmp_path, plan, report(plan, ExitCode.UNSUPPORTED))
    assert asked == ["plan", "setup"]
    assert module.failed is not None
    assert "/etc/docker/daemon.json does not parse (line 3)" in module.failed


def test_a_run_that_failed_fails_with_its_words(tmp_path: Path) -> None:
    plan = replace(NOTHING, steps=(STEP,))
    run = replace(report(plan, ExitCode.FAILED), error="docker does not answer", evidence="its own words")
    module, _ = play(tmp_path, plan, run)
    assert module.failed == "docker does not answer; its own words"
