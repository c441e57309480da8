from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from gpunode.errors import Drift, ExitCode, GpunodeError, TransportError, worst
from gpunode.fleet.run import run_fleet
from gpunode.model.report import HostOutcome


def fine(target: str) -> HostOutcome:
    return HostOutcome(target, ExitCode.DONE)


def nothing(outcome: HostOutcome) -> None:
    pass


def test_outcomes_come_in_the_order_of_the_targets_and_each_is_told_once() -> None:
    others = threading.Semaphore(0)  # that have been told

    def work(target: str) -> HostOutcome:
        if target == "a":
            assert others.acquire(timeout=60)
            assert others.acquire(timeout=60)
        return fine(target)

    def tell(outcome: HostOutcome) -> None:
        told.append(outcome.target)
        others.release()

    told: list[str] = []
    report = run_fleet(["a", "b", "c"], work, forks=3, on_done=tell)
    assert [host.target for host in report.hosts] == ["a", "b", "c"]
    assert sorted(told) == ["a", "b", "c"]
    assert told[-1] == "a"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (TransportError("b: no answer", evidence="e", remedy="r"), ExitCode.UNREACHABLE, "b: no answer"),
        (Drift("b: it changed"), ExitCode.DRIFT, "b: it changed"),
        (ValueError("odd\nsecond line"), ExitCode.FAILED, "internal error: ValueError: odd"),
        (RecursionError(), ExitCode.FAILED, "internal error: RecursionError: "),
    ],
    ids=["unreachable", "drift", "a fault of ours in one line", "without a message"],
)
def test_one_hosts_error_stays_its_own(error: Exception, code: ExitCode, said: str) -> None:
    def work(target: str) -> HostOutcome:
        if target == "b":
            raise error
        return fine(target)

    report = run_fleet(["a", "b", "c"], work, forks=2, on_done=nothing)
    assert [host.code for host in report.hosts] == [ExitCode.DONE, code, ExitCode.DONE]
    assert report.hosts[1].problem == said
    assert worst(host.code for host in report.hosts) is code
    if isinstance(error, GpunodeError):
        assert (report.hosts[1].evidence, report.hosts[1].remedy) == (error.evidence, error.remedy)
    else:
        assert "test_run.py" in report.hosts[1].evidence


@pytest.mark.parametrize(("hosts", "forks", "most"), [(12, 4, 4), (3, 50, 3), (4, 0, 1)])
def test_no_more_than_forks_work_at_once(hosts: int, forks: int, most: int) -> None:
    lock, now, peak, all_begun = threading.Lock(), [0], [0], threading.Event()

    def work(target: str) -> HostOutcome:
        with lock:
            now[0] += 1
            peak[0] = max(peak[0], now[0])
            if now[0] == most:
                all_begun.set()
        assert all_begun.wait(60)
        time.sleep(0.03)  # time for one too many to begin
        with lock:
            now[0] -= 1
        return fine(target)

    run_fleet([f"h{n}" for n in range(hosts)], work, forks=forks, on_done=nothing)
    assert peak[0] == most


@pytest.mark.parametrize(("hosts", "least", "most"), [(31, 0, 0), (320, 9, 10), (6400, 30, 70)])
def test_garbage_is_looked_for_seldom_in_a_large_fleet(
    hosts: int, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr("gpunode.fleet.run.gc.collect", lambda: looked.append(1))
    told: list[str] = []
    run_fleet([str(number) for number in range(hosts)], fine, on_done=lambda outcome: told.append(outcome.target))
    assert sorted(told, key=int) == [str(number) for number in range(hosts)]
    assert least <= len(looked) <= most


def test_no_hosts_is_an_empty_report() -> None:
    assert run_fleet([], fine, forks=5, on_done=nothing).hosts == ()


def test_ctrl_c_lets_the_hosts_at_work_end_and_begins_no_other() -> None:
    stop, at_work = threading.Event(), threading.Event()

    def work(target: str) -> HostOutcome:
        at_work.set()
        assert stop.wait(60)
        return fine(target)

    def press() -> None:
        at_work.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    report = run_fleet(["a", "b", "c"], work, forks=1, on_done=nothing, stop=stop)
    assert [host.code for host in report.hosts] == [ExitCode.DONE, ExitCode.FAILED, ExitCode.FAILED]
    assert report.hosts[1].problem == "not begun: the run was stopped"


def test_ctrl_c_is_answered_while_the_host_is_still_at_work() -> None:
    at_work, answered, answers = threading.Event(), threading.Event(), []

    def work(target: str) -> HostOutcome:
        at_work.set()
        return HostOutcome(target, ExitCode.DONE if answered.wait(60) else ExitCode.FAILED)

    def press() -> None:
        at_work.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    def answer() -> None:
        answers.append("once")
        answered.set()

    threading.Thread(target=press).start()
    report = run_fleet(["a", "b"], work, forks=1, on_done=nothing, on_stop=answer)
    assert [host.code for host in report.hosts] == [ExitCode.DONE, ExitCode.FAILED]
    assert answers == ["once"]


def test_a_second_ctrl_c_leaves_at_once_and_says_who_was_left() -> None:
    release, stop, at_work = threading.Event(), threading.Event(), threading.Event()

    def work(target: str) -> HostOutcome:
        at_work.set()
        release.wait(120)
        return fine(target)

    def press() -> None:
        at_work.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        stop.wait(60)
        time.sleep(1)  # it goes back to its waiting
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    begin = time.monotonic()
    report = run_fleet(["a", "b"], work, forks=1, on_done=nothing, stop=stop)
    release.set()
    assert time.monotonic() - begin < 100  # the host at work takes 120
    assert report.hosts[0].problem.startswith("left at work")
    assert report.hosts[1].problem.startswith("not begun")
