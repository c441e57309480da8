from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.run.apply_plans import apply_plans
from gpunode.converge import HostRun
from gpunode.errors import ExitCode, TransportError
from gpunode.fleet.deadline import Deadline, within
from gpunode.fleet.host import Host
from gpunode.fleet.run import run_fleet
from gpunode.model.plan import Plan
from gpunode.model.report import FleetReport, HostOutcome, RunReport, StepResult, StepStatus
from gpunode.model.spec import Spec
from gpunode.transport.ssh import Ssh
from tests.cli.test_said_to_the_user_once import Named
from tests.fleet.rollout.fakes import Fleet
from tests.transport.conftest import need_sshd as need_sshd
from tests.transport.conftest import options, target
from tests.transport.conftest import sshd as sshd
from tests.transport.sshd import Sshd


def looked(host: Host) -> HostOutcome:
    host.transport.run("true", timeout_s=600)
    return HostOutcome(str(host), ExitCode.DONE)


def test_hosts_that_hang_are_given_up_and_the_others_are_looked_at(sshd: Callable[..., Sshd]) -> None:
    """More of them than places: each frees its own."""
    stuck, well = sshd(force="sleep 300"), sshd()
    hosts = [Host(Ssh(target(s), options(s))) for s in (stuck, stuck, stuck, well)]
    work = within(10, looked, lambda host: host.transport.close())
    report = run_fleet(hosts, work, forks=2, on_done=lambda _: None)
    assert [host.code for host in report.hosts] == [ExitCode.UNREACHABLE] * 3 + [ExitCode.DONE]
    assert "not done within the 10 s of --deadline" in report.hosts[0].problem
    for host in hosts:
        host.transport.close()


def test_what_hangs_outside_of_any_connection_is_given_up_as_well() -> None:
    never, let_go = threading.Event(), threading.Event()

    def hang(_: str) -> HostOutcome:
        never.wait()
        raise AssertionError

    outcome = within(0.1, hang, lambda _: let_go.set())("h")
    assert outcome.code is ExitCode.UNREACHABLE
    assert let_go.wait(60)
    never.set()


def test_an_error_before_the_deadline_is_the_hosts_own() -> None:
    def refuse(name: str) -> HostOutcome:
        raise TransportError(f"{name}: no")

    with pytest.raises(TransportError, match="h: no"):
        within(60, refuse, lambda _: None)("h")


@pytest.mark.parametrize(("limit", "halts"), [("1", True), ("600", False), (None, False)])
def test_setup_begins_no_step_after_it(limit: str | None, halts: bool) -> None:
    """Nothing is given up: the work comes back by itself, and says why it stopped."""
    asked: list[bool] = []

    def work(run: HostRun, plan: Plan) -> HostOutcome:
        assert not run.stop()
        threading.Event().wait(1.1)
        asked.append(run.stop())
        status = StepStatus.SKIPPED if run.stop() else StepStatus.DONE
        return HostOutcome("h", ExitCode.DONE, run=RunReport("h", (StepResult("driver.install", status),), plan))

    planned = FleetReport((HostOutcome("h", ExitCode.DONE, plan=Plan("h", Spec(), "")),))
    report = apply_plans((Host(Named("h")),), planned, LiveOptions(deadline=limit), OutputOptions(), host_work=work)
    assert asked == [halts]
    run = report.hosts[0].run
    assert run is not None
    assert run.evidence == ("the 1 s of --deadline were over" if halts else "")


def test_a_run_that_was_stopped_by_a_person_is_not_put_down_to_the_deadline() -> None:
    run = RunReport("h", (StepResult("driver.install", StepStatus.SKIPPED),))
    outcome = HostOutcome("h", ExitCode.FAILED, run=run)
    assert Deadline(600).said(outcome) is outcome


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ssh", "h1", "--deadline", "0"], "--deadline '0' is not a whole number from 1"),
        (["--ssh", "h1", "--deadline", "5m"], "--deadline '5m' is not a whole number"),
        (["--deadline", "5"], "--deadline is for hosts over SSH"),
    ],
)
def test_a_deadline_that_cannot_be_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_wait_for_other_hosts_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("gpunode.fleet.deadline.time.monotonic", lambda: now[0])
    limit = Deadline(10)
    now[0] = 8.0

    def others(keep: str) -> str:
        now[0] = 3600.0
        return f"{keep} the lock"

    assert limit.uncounted(others)("keeps") == "keeps the lock"
    assert not limit.passed
    now[0] += 2
    assert limit.passed


def test_setup_does_not_count_the_wait_for_its_turn_to_reboot(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [0.0], list[bool]()
    monkeypatch.setattr("gpunode.fleet.deadline.time.monotonic", lambda: now[0])
    rollout = Fleet(["h"]).rollout

    def turn(*_: object) -> str:
        now[0] = 3600.0
        return ""

    def work(run: HostRun, plan: Plan) -> HostOutcome:
        assert run.reboot_turn.take(lambda: None) == ""
        asked.append(run.stop())
        return HostOutcome("h", ExitCode.DONE, run=RunReport("h", (), plan))

    monkeypatch.setattr(rollout.gate, "reboot", turn)
    planned = FleetReport((HostOutcome("h", ExitCode.DONE, plan=Plan("h", Spec(), "")),))
    hosts, output = LiveOptions(deadline="10"), OutputOptions()
    apply_plans((Host(Named("h")),), planned, hosts, output, host_work=work, rollout=rollout)
    assert asked == [False]
