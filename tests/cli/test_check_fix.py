"""check --fix on the command line: what it refuses, what it only shows, and what it says."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.groups import CheckedHostOptions, OutputOptions
from gpunode.cli.verbs import check_fix
from gpunode.cli.verbs.check_host import checked
from gpunode.errors import ExitCode, TransportError
from gpunode.fleet.host import Host
from gpunode.model.report import CheckReport, FleetReport, HostOutcome, RunReport, StepResult, StepStatus
from gpunode.model.spec import Spec
from gpunode.render.fix_text import after_text
from gpunode.transport.recorded import Recorded

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
MENDABLE, READY, BARE = "debian12-containerd21", "debian12-ready", "debian12-l4"
Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *words: str) -> tuple[int, str, str]:
    code = main(["check", "--fix", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def report_of(slug: str) -> CheckReport:
    host = Host(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug), recorded=True)
    report = checked(host, Spec(), False).check
    assert report is not None
    return report


def test_a_recording_shows_the_plan_and_what_is_a_persons_and_changes_nothing(capsys: Captured) -> None:
    code, out, err = run(capsys, "--recorded", str(EXAMPLES / MENDABLE), "--yes")
    assert (code, err) == (ExitCode.FAILED, "")
    assert "containerd.default" in out
    assert "by hand  drv.headers-meta" in out
    assert "it changes packages" in out
    assert out.endswith("This host is a recording: its plan is only shown.\n")
    assert "driver.install" not in out


def test_verbose_shows_reasons_commands_and_diffs(capsys: Captured) -> None:
    _, out, _ = run(capsys, "--recorded", str(EXAMPLES / MENDABLE), "-v")
    assert "why: every new container and pod gets its GPUs" in out
    assert "+++" in out


def test_where_nothing_is_found_nothing_is_planned(capsys: Captured) -> None:
    code, out, _ = run(capsys, "--recorded", str(EXAMPLES / READY))
    assert code == ExitCode.DONE
    assert out.startswith("no finding is left")


def test_a_host_without_driver_has_nothing_safe(capsys: Captured) -> None:
    code, out, _ = run(capsys, "--recorded", str(EXAMPLES / BARE))
    assert code == ExitCode.FAILED
    assert "by hand  drv.module-loaded" in out
    assert "gpunode setup" in out
    assert "Total" not in out, "there is no plan"


def test_json_has_the_plan_and_each_findings_fix(capsys: Captured) -> None:
    _, out, _ = run(capsys, "--recorded", str(EXAMPLES / MENDABLE), "--json")
    told = json.loads(out)
    assert told["schema"] == "gpunode.fix-result/1"
    fixes = {row["id"]: row["fix"] for row in told["hosts"][0]["checks"] if row["outcome"] == "finding"}
    steps = {step["id"] for step in told["hosts"][0]["plan"]["steps"]}
    assert {step for fix in fixes.values() if fix["safe"] for step in fix["steps"]} == steps
    assert fixes["drv.headers-meta"] == {
        "safe": False, "by_hand": "packages", "setup": [], "steps": [],
        "why": "it changes packages: driver, toolkit, engine or kernel",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--fix"], "there is no terminal to ask on"),
        (["check", "--yes"], "--yes is for check --fix"),
        (["check", "--fix", "--npd"], "--fix and --npd exclude each other"),
        (["check", "--fix", "--yes", "--format", "junit"], "--format"),
    ],
    ids=["no terminal", "--yes alone", "two modes", "a format of another result"],
)
def test_what_is_asked_wrongly_is_refused_before_a_host_is_asked(
    words: list[str], said: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(words) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_the_result_says_what_is_gone_and_what_stays() -> None:
    before, after = report_of(MENDABLE), report_of(READY)
    done = RunReport("gpu07", (StepResult("containerd.default", StepStatus.DONE),))
    outcome = HostOutcome("gpu07", ExitCode.DONE, check=after, before=before, run=done)
    said = after_text([outcome], ssh=True)
    assert "1 step done" in said
    assert "gone   rt.containerd-file   containerd's files have no handler nvidia" in said
    assert "stays" not in said
    some = HostOutcome("gpu07", ExitCode.FAILED, check=before, before=before, run=done)
    said = after_text([some], ssh=True)
    assert "gone" not in said
    assert "stays  drv.headers-meta" in said
    assert "gpunode setup --ssh gpu07" in said


def test_a_no_to_the_question_is_a_result_for_programs(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(Recorded((EXAMPLES / MENDABLE / "facts.txt").read_bytes(), "gpu07"))
    monkeypatch.setattr("gpunode.fleet.apply_one.wait_for_killed", lambda *_: None)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    hosts, output = CheckedHostOptions(ssh=["gpu07"]), OutputOptions(json=True)
    code = check_fix._run((host,), hosts, output, lambda _: Spec(), lambda one: checked(one, Spec(), False), ask=True)
    (told,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (code, told["code"], told["untouched"]) == (ExitCode.FAILED, ExitCode.FAILED, "not-begun")
    assert told["problem"] == "not begun: the question was answered with no"
    assert told["plan"]["steps"]
    assert "run" not in told


@pytest.mark.parametrize("how", ["it is gone", "its deadline is over"])
def test_a_host_that_cannot_be_checked_again_keeps_how_its_run_ended(
    how: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback that failed is worse than a host that does not answer."""
    host = Host(Recorded((EXAMPLES / MENDABLE / "facts.txt").read_bytes(), "gpu07"))
    found = checked(host, Spec(), False)
    step = StepResult("containerd.default", StepStatus.ROLLBACK_FAILED, error="the old file cannot be written")
    run = RunReport("gpu07", (step,), error="no room", code=ExitCode.ROLLBACK_FAILED)
    ended = HostOutcome("gpu07", ExitCode.ROLLBACK_FAILED, run=run)
    monkeypatch.setattr(check_fix, "apply_plans", lambda *_, **__: FleetReport((ended,)))
    monkeypatch.setattr("gpunode.fleet.apply_one.wait_for_killed", lambda *_: None)
    looks, never = [found], threading.Event()

    def check(host: Host) -> HostOutcome:
        if looks:
            return looks.pop()
        if how == "it is gone":
            raise TransportError("gpu07: connection refused")
        never.wait()
        raise AssertionError

    deadline = None if how == "it is gone" else "5"
    hosts, output = CheckedHostOptions(ssh=["gpu07"], deadline=deadline), OutputOptions(json=True)
    code = check_fix._run((host,), hosts, output, lambda _: Spec(), check, ask=False)
    never.set()
    (told,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (code, told["code"]) == (ExitCode.ROLLBACK_FAILED, ExitCode.ROLLBACK_FAILED)
    assert "containerd.default" in json.dumps(told)
    assert "after its fix the host cannot be checked: " in json.dumps(told)
