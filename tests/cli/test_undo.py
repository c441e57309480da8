"""gpunode undo before it meets a host, and the words it ends with."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.options.rollout import WaveOptions
from gpunode.cli.verbs.setup_rollout import Preparation
from gpunode.cli.verbs.undo import _run
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.fleet.undo_one import ended
from gpunode.model.action import RemoveFile
from gpunode.model.plan import Kept, Plan, Step, Undoing
from gpunode.model.report import HostOutcome, RunReport, StepResult, StepStatus
from gpunode.model.spec import Spec
from gpunode.planner.kernel.setup import NOUVEAU_FILE
from gpunode.remedy import AGAIN, Remedy, RepairAction, setup
from gpunode.render.plan_text import plan_text
from gpunode.transport.recorded import Recorded

RECORDING = str(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["undo"], "no terminal to ask on"),
        (["undo", "--yes", "--recorded", RECORDING], "no such option: --recorded"),
        (["undo", "--driver", "580"], "no such option"),
    ],
    ids=["nobody to ask", "a recording", "undo wants nothing of its own"],
)  # fmt: skip
def test_a_wrong_command_line_is_exit_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())


def plan(*left: Kept) -> Plan:
    return Plan("gpu07", Spec(), "", undo=Undoing(("r1",), left=left))


def test_with_something_left_it_is_not_a_success_and_says_what_to_type() -> None:
    kept = Kept("/etc/x", "/etc/x was changed by something else since, so it is not changed: rm /etc/x removes it")
    report = ended(plan(kept), RunReport("gpu07", (StepResult("undo.note", StepStatus.DONE),)))
    assert report.code is ExitCode.FAILED
    assert report.error == "1 thing not undone, the rest is undone"
    assert "rm /etc/x" in report.evidence


def test_a_failure_counts_more_than_a_manual_step_and_is_tried_again_where_something_waits() -> None:
    waits = Plan("gpu07", Spec(), "", undo=Undoing(("r1",), left=(Kept("/etc/x", "/etc/x is broken"),), pending=True))
    done = RunReport("gpu07", code=ExitCode.REBOOT_NEEDED, by_hand=("remove web; then gpunode undo",))
    report = ended(waits, done)
    assert (report.code, report.by_hand) == (ExitCode.FAILED, done.by_hand)
    assert report.remedy.text == "fix what is listed there; a later gpunode undo tries it again"


def test_containers_that_are_waited_for_are_a_manual_step() -> None:
    done = RunReport("gpu07", code=ExitCode.REBOOT_NEEDED, by_hand=("remove web; then gpunode undo",))
    assert ended(plan(), done) == done


def test_what_is_lost_stands_in_the_plan() -> None:
    lost = Kept("undo.containers", "docker: 1 container cannot be started any more: web")
    shown = plan_text(Plan("gpu07", Spec(), "", undo=Undoing(("r1",), lost=(lost,))))
    assert "Lost       docker: 1 container cannot be started any more: web" in shown


def test_all_undone_is_a_success() -> None:
    done = RunReport("gpu07", (StepResult("undo.docker.default", StepStatus.DONE),))
    assert ended(plan(), done) == done


def test_the_reboot_that_brings_nouveau_back_is_said() -> None:
    step = Step("undo.kernel.nouveau", "remove the blacklist", "", (RemoveFile(NOUVEAU_FILE),))
    report = ended(replace(plan(), steps=(step,)), RunReport("gpu07", (StepResult(step.id, StepStatus.DONE),)))
    assert (report.code, report.remedy.text) == (ExitCode.DONE, "reboot when it suits: that brings nouveau back")


def test_remedies_speak_of_undo_and_a_failure_keeps_its_code() -> None:
    toolkit = setup("--only", "toolkit")
    mend = Remedy(RepairAction.CONFIGURE, "mend it, then run ", AGAIN, " again, or ", toolkit)
    goes_on = Remedy(RepairAction.NONE, AGAIN, " goes on")
    step = StepResult("undo.x", StepStatus.FAILED, remedy=mend)
    failed = RunReport("gpu07", (step,), remedy=goes_on, code=ExitCode.ROLLBACK_FAILED)
    report = ended(plan(Kept("/etc/x", "left")), failed)
    assert report.code is ExitCode.ROLLBACK_FAILED
    assert report.remedy.text == "gpunode undo goes on"
    assert report.steps[0].remedy.text == "mend it, then run gpunode undo again, or gpunode setup --only toolkit"


def test_a_no_to_the_question_is_a_result_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host(Recorded(b"", "gpu07"))
    step = Step("undo.kernel.nouveau", "remove the blacklist", "", (RemoveFile(NOUVEAU_FILE),))
    undoing = Plan("gpu07", Spec(), "", steps=(step,), undo=Undoing(("r1",)))
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    hosts, output = LiveOptions(ssh=["gpu07"]), OutputOptions(json=True)

    def planned(one: Host) -> HostOutcome:
        return HostOutcome(str(one), ExitCode.DONE, plan=undoing)

    def work(*_: object) -> HostOutcome:
        raise AssertionError("nobody agreed to it")

    code = _run((host,), hosts, output, work, planned, Preparation.of(WaveOptions(), (host,)), ask=True, only=False)
    (told,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (code, told["code"], told["untouched"]) == (ExitCode.FAILED, ExitCode.FAILED, "not-begun")
