"""Runs over simulated hosts: planner, checks, gate and threads are the real ones, the answers are canned."""

from __future__ import annotations

import threading
from collections import Counter

from gpunode.errors import ExitCode
from gpunode.facts.recordings import load_recording
from gpunode.facts.wire import decode
from gpunode.fleet.rollout.policy import Policy, Share, limits
from gpunode.model.report import Untouched
from tests.bench.differing import as_host
from tests.bench.simulated import EXAMPLES, POLICY, READY, Setup, check, fleet

HOSTS = 8


class HeldReboots:
    """Nobody comes back before every host reboots, or waits for its turn to: as many as ever could be down are then."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._here: set[str] = set()
        self._lock, self._all_here = threading.Lock(), threading.Event()

    def reboot(self, target: str) -> None:
        self._arrives(target)
        assert self._all_here.wait(60), f"only {sorted(self._here)} reboot or wait for it"

    def waits(self, target: str, what: str) -> None:
        if what.startswith("its turn to reboot"):
            self._arrives(target)

    def _arrives(self, target: str) -> None:
        with self._lock:
            self._here.add(target)
            if len(self._here) == self._hosts:
                self._all_here.set()


def test_all_go_in_waves_the_canary_first() -> None:
    setup = Setup(HOSTS)
    report = setup.run()
    assert [host.code for host in report.hosts] == [ExitCode.DONE] * HOSTS
    first = limits(POLICY, HOSTS).waves[0]
    assert sorted(setup.begun[:first]) == [host.target for host in report.hosts[:first]]
    assert all(host.plan is None and host.facts is None for host in report.hosts)  # it is lean


def test_as_many_reboot_at_once_as_may_and_no_more() -> None:
    held = HeldReboots(HOSTS)
    policy = Policy(canary=0, batch=Share(HOSTS), max_reboots=Share(3))
    setup = Setup(HOSTS, policy, reboot=held.reboot, waits=held.waits)
    report = setup.run()
    assert [(host.code, host.problem) for host in report.hosts] == [(ExitCode.DONE, "")] * HOSTS
    assert setup.most_rebooting == 3


def test_a_canary_that_is_worse_after_its_setup_stops_all_others() -> None:
    setup = Setup(HOSTS, worse=frozenset({"gpu00002"}))
    report = setup.run()
    assert Counter(host.untouched for host in report.hosts)[Untouched.NOT_BEGUN] == HOSTS - POLICY.canary
    assert len(setup.begun) == POLICY.canary
    assert report.hosts[1].run is not None
    assert "not there before" in report.hosts[1].run.error


def test_a_check_of_many_hosts_holds_each_result_once_and_no_facts() -> None:
    pieces: list[str] = []
    report = check(HOSTS, pieces.append)
    checks = [host.check for host in report.hosts if host.check]
    assert len(checks) == HOSTS
    assert all(one.facts is None for one in checks)
    distinct = {id(result) for one in checks for result in one.results.values()}
    assert len(distinct) <= len(checks[0].results) + 5, "hosts that are alike do not share their results"
    assert (
        sum(f'"target": "{host}"' in piece for host in map(str, fleet(HOSTS, "el9-a10")) for piece in pieces) == HOSTS
    )


def test_hosts_that_differ_do_so_where_hosts_do_and_are_checked_as_the_one_they_are_made_of() -> None:
    made_s: list[float] = []
    alike, differ = check(HOSTS, lambda _: None), check(HOSTS, lambda _: None, differing=made_s)
    assert len(made_s) == HOSTS
    assert [host.code for host in differ.hosts] == [host.code for host in alike.hosts]
    recording = load_recording(EXAMPLES / READY)
    first, second = (decode(as_host(recording, number)).commands for number in (1, 2))
    same = {name for name, section in first.items() if second.get(name) == section}
    assert not same & {"identity", "pci", "smi", "services", "processes", "dpkg", "docker:info"}
    assert same >= {"os", "modinfo", "ldconfig", "toolkit", "ctk_version"}
    assert as_host(recording, 1) == as_host(recording, 1)
