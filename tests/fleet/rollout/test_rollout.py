"""Hosts go in waves, reboot one after another, and stop where they should; counted by events, never by time."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from datetime import timedelta

import pytest

from gpunode.converge import HostRun
from gpunode.errors import ExitCode, HostBusy, HostLocked, StepFailed, TransportError, worst
from gpunode.fleet.rollout.policy import Policy, Share
from gpunode.fleet.rollout.window import Window
from gpunode.model.plan import Plan
from gpunode.model.report import HostOutcome, RunReport, StepResult, StepStatus, Untouched
from tests.fleet.rollout.fakes import NOW, Fleet, begins, done, names, reboot

WAIT_S = 60


@pytest.mark.parametrize(
    ("hosts", "canary", "batch", "forks"),
    [*itertools.product((1, 2, 5, 9), (0, 1, 2), (1, 2, 4), (1, 3, 50))],
)
def test_no_host_begins_before_all_of_the_earlier_waves_have_ended(
    hosts: int, canary: int, batch: int, forks: int
) -> None:
    fleet, lock, at_work, log = Fleet(names(hosts), Policy(canary, Share(batch))), threading.Lock(), set[str](), []
    waves = fleet.rollout.waves

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        with lock:
            at_work.add(target)
            log.append((waves[target], {waves[other] for other in at_work}))
        with lock:
            at_work.discard(target)
        return done(target)

    report = fleet.run(one, forks=forks)
    assert [host.code for host in report.hosts] == [ExitCode.DONE] * hosts
    assert [host.target for host in report.hosts] == names(hosts)
    assert all(beside == {wave} for wave, beside in log)
    assert [wave for wave, _ in log] == sorted(waves.values())


@pytest.mark.parametrize(
    ("hosts", "policy", "most"),
    [
        (20, Policy(max_reboots=Share(4)), 4),
        (20, Policy(), 2),
        (2, Policy(max_reboots=Share(2)), 1),
        (4, Policy(max_reboots=Share(100, percent=True), batch=Share(2)), 2),
    ],
    ids=["as asked for", "a tenth", "of two one", "of a batch all"],
)
def test_no_more_reboot_at_once_than_the_limit_and_so_many_do(hosts: int, policy: Policy, most: int) -> None:
    fleet, lock, now, peak, full = Fleet(names(hosts), policy), threading.Lock(), [0], [0], threading.Event()

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        assert reboot(host_run) == ""
        with lock:
            now[0] += 1
            peak[0] = max(peak[0], now[0])
            if now[0] == most:
                full.set()
        assert full.wait(WAIT_S)  # the first ones wait until as many as may are down together
        with lock:
            now[0] -= 1
        return done(host_run.transport.target)

    report = fleet.run(one)
    assert [host.code for host in report.hosts] == [ExitCode.DONE] * hosts
    assert peak[0] == most


def test_a_turn_is_held_until_the_host_is_well_not_until_it_is_back() -> None:
    fleet, second_asks, order = Fleet(names(2)), threading.Event(), list[str]()

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        if target == "gpu02":
            assert first_reboots.wait(WAIT_S)
            second_asks.set()
        assert reboot(host_run) == ""
        first_reboots.set()
        order.append(f"{target} is down")
        assert second_asks.wait(WAIT_S)
        order.append(f"{target} is well")
        return done(target)

    first_reboots = threading.Event()
    fleet.run(one)
    assert order == ["gpu01 is down", "gpu01 is well", "gpu02 is down", "gpu02 is well"]


@pytest.mark.parametrize("code", [ExitCode.UNREACHABLE, ExitCode.FAILED])
def test_a_host_that_is_not_back_or_not_well_after_its_reboot_stops_all_others(code: ExitCode) -> None:
    """gpu01 goes down; gpu02 is at work and will ask; gpu03 and gpu04 are of a later batch."""
    fleet, others_ask = Fleet(names(4), Policy(batch=Share(2))), threading.Event()
    both = threading.Barrier(2)

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        both.wait(WAIT_S)
        if target == "gpu01":
            assert reboot(host_run) == ""
            others_ask.set()
            if code is ExitCode.UNREACHABLE:
                raise TransportError("gpu01: did not come back within 900 s after the reboot")
            raise StepFailed("the driver does not load")
        assert others_ask.wait(WAIT_S)
        why = reboot(host_run)
        return HostOutcome(target, ExitCode.REBOOT_NEEDED, problem=why)

    report = fleet.run(one)
    assert [host.code for host in report.hosts] == [code, ExitCode.REBOOT_NEEDED, ExitCode.FAILED, ExitCode.FAILED]
    said = "did not come back from" if code is ExitCode.UNREACHABLE else "is not well after"
    assert report.hosts[1].problem == f"gpu01 {said} its reboot"
    assert [host.problem for host in report.hosts[2:]] == [f"not begun: gpu01 {said} its reboot"] * 2
    assert [host.untouched for host in report.hosts[2:]] == [Untouched.NOT_BEGUN] * 2
    assert worst(host.code for host in report.hosts) is ExitCode.FAILED


def test_a_turn_that_is_given_back_is_the_next_ones_and_a_failure_after_it_stops_nobody() -> None:
    fleet = Fleet(names(3), Policy(max_reboots=Share(1)))

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        assert reboot(host_run) == ""
        host_run.reboot_turn.give_back()
        raise StepFailed("not rebooted: its next kernel has no module")

    assert [host.code for host in fleet.run(one).hosts] == [ExitCode.FAILED] * 3


def test_a_host_has_as_long_for_its_reboot_as_was_asked_for() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        seen.append(host_run.reboot_wait_s)
        return done(plan.target)

    seen: list[float | None] = []
    for policy in (Policy(), Policy(reboot_wait_s=1800)):
        Fleet(names(1), policy).run(one)
    assert seen == [None, 1800]


def test_a_step_that_the_deadline_left_out_after_a_reboot_stops_nobody() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        assert reboot(host_run) == ""
        steps = (StepResult("driver.install", StepStatus.DONE), StepResult("toolkit.install", StepStatus.SKIPPED))
        run = RunReport(plan.target, steps, error="stopped before toolkit.install", code=ExitCode.FAILED)
        return HostOutcome(plan.target, ExitCode.FAILED, run=run)

    fleet = Fleet(names(3), Policy(max_reboots=Share(1)))
    assert [host.run is not None for host in fleet.run(one, forks=1).hosts] == [True] * 3
    assert fleet.rollout.gate.stopped == ""


def test_a_host_that_has_its_turn_knows_that_the_run_was_stopped_meanwhile() -> None:
    fleet = Fleet(names(1))

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        assert reboot(host_run) == ""
        assert host_run.reboot_turn.closed() == ""
        fleet.rollout.stop.set()
        return HostOutcome(plan.target, ExitCode.REBOOT_NEEDED, problem=host_run.reboot_turn.closed())

    assert fleet.run(one).hosts[0].problem == "the run was stopped"


def test_a_lost_lock_while_a_host_waits_for_its_turn_is_its_own_failure() -> None:
    fleet, held, waited = Fleet(names(2)), threading.Event(), threading.Event()
    ticks = itertools.count(step=30)
    fleet.rollout.gate._clock = lambda: float(next(ticks))

    def lost() -> None:
        waited.set()
        raise HostLocked("another gpunode took over")

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        if target == "gpu01":
            assert reboot(host_run) == ""
            held.set()
            assert waited.wait(WAIT_S)
            return done(target)
        assert held.wait(WAIT_S)
        reboot(host_run, lost)
        raise AssertionError("its turn came although the other one held it")

    assert [host.code for host in fleet.run(one).hosts] == [ExitCode.DONE, ExitCode.LOCKED]


@pytest.mark.parametrize(
    ("policy", "bad", "begun", "why"),
    [
        (Policy(canary=1), {"gpu01"}, 1, "the canary gpu01 failed"),
        (Policy(canary=2), {"gpu02"}, 2, "the canary gpu02 failed"),
        (Policy(canary=1, max_failures=Share(100, percent=True)), {"gpu01"}, 1, "the canary gpu01 failed"),
        (Policy(batch=Share(1)), {"gpu02"}, 2, "1 host failed, and --max-failures is 0"),
        (Policy(batch=Share(1), max_failures=Share(2)), {*names(9)}, 3, "3 hosts failed, and --max-failures is 2"),
        (Policy(max_failures=Share(0)), {"gpu01"}, 1, "1 host failed, and --max-failures is 0"),
        (Policy(), {*names(6)}, 6, ""),
        (Policy(batch=Share(1), max_failures=Share(50, percent=True)), {"gpu01", "gpu02", "gpu03"}, 6, ""),
    ],
    ids=[
        "a canary",
        "any of them",
        "whatever is allowed of the others",
        "a tenth of six is none",
        "the third",
        "the first",
        "no stages: none stops",
        "as many as may fail stop nothing",
    ],
)
def test_what_stops_a_rollout(policy: Policy, bad: set[str], begun: int, why: str) -> None:
    """With one fork, so that which hosts have begun is no matter of time."""

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        began.append(target)
        return done(target, code=ExitCode.FAILED if target in bad else ExitCode.DONE)

    began: list[str] = []
    report = Fleet(names(6), policy).run(one, forks=1)
    assert began == names(6)[:begun]
    assert {host.problem for host in report.hosts[begun:]} == ({f"not begun: {why}"} if why else set())
    assert all(host.code is ExitCode.FAILED for host in report.hosts[begun:])


def test_hosts_at_work_come_to_their_end_when_another_one_stops_the_rollout() -> None:
    fleet, both = Fleet(names(3), Policy(max_failures=Share(0))), threading.Barrier(2)

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        both.wait(WAIT_S)
        if target == "gpu01":
            raise StepFailed("it failed")
        while not fleet.rollout.gate.closed():
            threading.Event().wait(0.01)
        assert not host_run.stop(), "only Ctrl-C stops a host between its steps"
        return done(target)

    report = fleet.run(one, forks=2)
    assert [host.code for host in report.hosts] == [ExitCode.FAILED, ExitCode.DONE, ExitCode.FAILED]
    assert report.hosts[2].untouched is Untouched.NOT_BEGUN


@pytest.mark.parametrize(
    "outcome",
    [
        HostOutcome("x", ExitCode.REBOOT_NEEDED),
        HostOutcome("x", ExitCode.DONE),
        done("x", code=ExitCode.UNSUPPORTED),
    ],
    ids=["a reboot is left to a person", "done", "an engine was refused, as planned"],
)
def test_what_is_no_failure(outcome: HostOutcome) -> None:
    report = Fleet(names(3), Policy(canary=1, max_failures=Share(0))).run(lambda _, __: outcome)
    assert [host.code for host in report.hosts] == [outcome.code] * 3


def test_a_busy_host_is_skipped_and_counts_as_no_failure() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        if target == "gpu02":
            raise HostBusy("gpu02: the GPUs are in use")
        return done(target)

    report = Fleet(names(3), Policy(max_failures=Share(0), batch=Share(1))).run(one)
    assert [host.untouched for host in report.hosts] == [None, Untouched.SKIPPED, None]
    assert [host.code for host in report.hosts] == [ExitCode.DONE, ExitCode.UNSUPPORTED, ExitCode.DONE]


def test_a_host_that_is_busy_in_the_middle_of_its_setup_was_not_skipped() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        begins(host_run)
        raise HostBusy("gpu01: the GPUs are in use")

    report = Fleet(names(2), Policy(max_failures=Share(0))).run(one, forks=1)
    assert [host.untouched for host in report.hosts] == [None, Untouched.NOT_BEGUN]


def test_canaries_that_are_all_skipped_say_nothing_of_the_others() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        raise HostBusy("the GPUs are in use")

    report = Fleet(names(4), Policy(canary=2)).run(one)
    assert [host.untouched for host in report.hosts] == [Untouched.SKIPPED] * 2 + [Untouched.NOT_BEGUN] * 2
    assert "no canary was set up" in report.hosts[3].problem


def test_a_host_with_nothing_to_do_waits_for_nobody_and_is_no_canary() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        return done(target, code=ExitCode.FAILED if target == "gpu02" else ExitCode.DONE)

    report = Fleet(names(4), Policy(canary=1), idle=["gpu01", "gpu04"]).run(one)
    assert [host.code for host in report.hosts] == [ExitCode.DONE, ExitCode.FAILED, ExitCode.FAILED, ExitCode.DONE]
    assert report.hosts[2].problem == "not begun: the canary gpu02 failed"


def test_nothing_begins_and_nobody_reboots_past_the_window() -> None:
    clock = [NOW]
    fleet = Fleet(names(3), Policy(batch=Share(1), window=Window(closes=NOW + timedelta(hours=1))), lambda: clock[0])

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        assert fleet.rollout.gate.closed() == ""
        clock[0] += timedelta(hours=2)
        return HostOutcome(host_run.transport.target, ExitCode.REBOOT_NEEDED, problem=reboot(host_run))

    report = fleet.run(one)
    assert "the window closed at" in report.hosts[0].problem
    assert all(host.problem.startswith("not begun: the window closed at") for host in report.hosts[1:])


def test_before_the_window_hosts_wait_and_say_so() -> None:
    clock, opens = [NOW], NOW + timedelta(milliseconds=20)
    fleet = Fleet(names(2), Policy(window=Window(opens=opens)), lambda: clock[0])

    def opened() -> None:
        while len(fleet.waits) < 2:
            threading.Event().wait(0.01)
        clock[0] = opens

    threading.Thread(target=opened).start()
    assert [host.code for host in fleet.run(lambda run, _: done(run.transport.target)).hosts] == [ExitCode.DONE] * 2
    assert "the window, which opens at" in fleet.waits[0][1]


def test_ctrl_c_ends_the_wait_for_a_wave_and_for_a_reboot_at_once() -> None:
    fleet, held = Fleet(names(4), Policy(batch=Share(2))), threading.Event()

    def press() -> None:
        while {host for host, _ in fleet.waits} != {"gpu02", "gpu03", "gpu04"}:
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        target = host_run.transport.target
        if target == "gpu01":
            assert reboot(host_run) == ""
            held.set()
            assert answered.wait(WAIT_S)
            return done(target)
        assert held.wait(WAIT_S)
        threading.Thread(target=press).start()
        why = reboot(host_run)
        answered.set()
        return HostOutcome(target, ExitCode.REBOOT_NEEDED, problem=why)

    answered = threading.Event()
    report = fleet.run(one)
    assert report.hosts[1].problem == "the run was stopped"
    assert [host.problem for host in report.hosts[2:]] == ["not begun: the run was stopped"] * 2
    assert report.hosts[0].code is ExitCode.DONE


def test_after_ctrl_c_nobody_begins_even_before_it_has_been_answered() -> None:
    fleet = Fleet(names(2))
    fleet.rollout.stop.set()
    assert fleet.rollout.gate.admit(0, lambda _: None) == "the run was stopped"
    assert fleet.rollout.gate.reboot("gpu01", lambda _: None, lambda: None) == "the run was stopped"
