"""Fleets of hosts that are only their answers: how much memory and CPU a host costs, without a network.

Real are the probe's reading, the checks, the planner, the fleet's threads, gate and health, and the results' renderers.
Canned are the answers to the probe, and what a plan does on a host. The hosts of `check` are one recording, byte for
byte but for the name; those of `differing` are as differing.py makes them, which costs CPU that is taken off again.
`python -m tests.bench.simulated check|differing|setup HOSTS` prints what one process of its own took; `rows` starts one
for each size.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path

from gpunode.apply.lock import HostLock, Owner
from gpunode.catalog.load import load_catalog
from gpunode.checks.rules.judged import Judgement
from gpunode.cli.verbs.check_fleet import Kept, with_peers
from gpunode.cli.verbs.check_host import checked
from gpunode.cli.verbs.plan import planned
from gpunode.converge import HostRun
from gpunode.errors import ExitCode, TransportError
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.fleet.rollout.gate import Gate
from gpunode.fleet.rollout.health import errors_of
from gpunode.fleet.rollout.policy import Policy, Share, limits
from gpunode.fleet.rollout.rollout import Health, Rollout
from gpunode.fleet.rollout.waves import wave_numbers
from gpunode.fleet.run import run_fleet
from gpunode.fleet.runs.outcome import lean
from gpunode.fleet.runs.shared import SharedParts
from gpunode.model.plan import Plan
from gpunode.model.report import (
    CheckReport,
    Event,
    EventKind,
    FleetReport,
    HostOutcome,
    RunReport,
    StepResult,
    StepStatus,
)
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.render.machine import hosts_json
from gpunode.render.matrix.page import matrix_html
from gpunode.render.run_text import fleet_run_text
from gpunode.transport.base import Completed
from tests.bench.differing import as_host
from tests.bench.measure import Row

SIZES = (500, 1000, 5000)
FORKS = 50
EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
READY, BARE = "debian12-ready", "el9-a10"
POLICY = Policy(canary=2, batch=Share(10, percent=True), max_failures=Share(5, percent=True), max_reboots=Share(5))
WANTED = Spec(reboot=RebootPolicy.IF_NEEDED)


@dataclass
class Canned:
    """A host that answers every script with one recording, as another machine: by its own name and boot."""

    target: str
    recording: bytes
    error: TransportError | None = None
    number: int | None = None  # differs from the others (differing.py); None: only in its name
    made_s: list[float] = field(default_factory=list)  # processor seconds that it took to make it differ

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if self.error:
            raise self.error
        recording = self.recording
        if self.number is not None:
            begin = time.thread_time()
            recording = as_host(recording, self.number)
            self.made_s.append(time.thread_time() - begin)
        identity, line, rest = recording.partition(b"|hostname=")
        name = self.target.encode()
        return Completed(0, identity + line + name + b"\n" + rest.partition(b"\n")[2], b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def fleet(count: int, slug: str, *, lost: int = 0, differing: list[float] | None = None) -> list[Host]:
    """`lost`: every so many-th does not answer; 0: all answer. `differing`: they do, and what that took goes there."""
    recording, error = load_recording(EXAMPLES / slug), TransportError("no route to host", evidence="e", remedy="r")

    def host(number: int) -> Host:
        canned = Canned(f"gpu{number:05}", recording, error if lost and number % lost == 0 else None)
        if differing is not None:
            canned.number, canned.made_s = number, differing
        return Host(canned, recorded=True)

    return [host(number) for number in range(1, count + 1)]


def check(count: int, write: Callable[[str], object], *, differing: list[float] | None = None) -> FleetReport:
    """As `check --format json` and `--format html` do it; `write` is given the pieces of both results."""
    kept = Kept(page=True)
    report = run_fleet(
        fleet(count, READY, lost=100, differing=differing),
        lambda host: kept.outcome(checked(host, Spec(), False)),
        forks=FORKS,
        on_done=lambda _: None,
    )
    report = with_peers(report, kept, Judgement(), load_catalog(), date.today(), strict=False, again=())
    for piece in hosts_json("check", report.hosts, seconds_s=report.seconds):
        write(piece)
    write(matrix_html(report.hosts, kept.sights, at_s=time.time(), seconds_s=report.seconds, ssh=True))
    return report


@dataclass
class Setup:
    """A rollout: canary, batches, health gate, and reboots by their limit."""

    count: int
    policy: Policy = POLICY
    worse: frozenset[str] = frozenset()  # hosts that say of themselves afterwards what fails a check: another system
    reboot: Callable[[str], None] = lambda target: None  # what a host does between going down and coming back
    waits: Callable[[str, str], None] = lambda target, what: None  # is told which host waits, and for what
    most_rebooting: int = 0
    begun: list[str] = field(default_factory=list)
    _rebooting: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _before: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

    def run(self) -> FleetReport:
        hosts = {str(host): host for host in fleet(self.count, BARE)}
        share = SharedParts()
        looked = run_fleet(list(hosts.values()), partial(self._look, share), forks=FORKS, on_done=lambda _: None)
        sizes, stop = limits(self.policy, self.count), threading.Event()
        gate = Gate(sizes, self.policy.window, interrupted=stop.is_set, now=lambda: datetime.now(timezone.utc))
        health = Health(lambda target: self._check(hosts[target]), self._before)
        rollout = Rollout(gate, dict(zip(hosts, wave_numbers(sizes.waves), strict=True)), health, stop=stop)
        work = rollout.host_work(self._carried_out, self.waits)
        plans = {outcome.target: outcome.plan for outcome in looked.hosts}
        del looked  # as apply_plans lets each plan go

        def one(host: Host) -> HostOutcome:
            plan = plans.pop(str(host))
            assert plan is not None
            lock = HostLock(host.transport, Owner("c", 1, "t"), lambda _: True)
            run = HostRun("r", host.transport, lock, lambda event: None, stop.is_set, pause=lambda _: None)
            return lean(work(run, plan))

        return run_fleet(list(hosts.values()), one, forks=FORKS, on_done=lambda _: None, stop=stop)

    def _look(self, share: SharedParts, host: Host) -> HostOutcome:
        self._before[str(host)] = errors_of(self._check(host))
        outcome = planned(host, WANTED)
        assert outcome.plan is not None
        return replace(outcome, plan=share.plan(outcome.plan))

    def _check(self, host: Host) -> CheckReport:
        found = checked(host, WANTED, False).check
        assert found is not None
        return found

    def _carried_out(self, host_run: HostRun, plan: Plan) -> HostOutcome:
        """In place of converge: each step is done at once, then the host takes its turn to reboot."""
        target = host_run.transport.target
        self.begun.append(target)
        for step in plan.steps:
            host_run.on_event(Event(EventKind.STEP_BEGIN, target, step.title, step.id))
        if refused := host_run.reboot_turn.take(lambda: None):
            return HostOutcome(target, ExitCode.FAILED, problem=refused)
        with self._lock:
            self._rebooting.add(target)
            self.most_rebooting = max(self.most_rebooting, len(self._rebooting))
        self.reboot(target)
        if target in self.worse:
            assert isinstance(host_run.transport, Canned)
            host_run.transport.recording = host_run.transport.recording.replace(b'|ID="', b'|ID="not-')
        with self._lock:
            self._rebooting.discard(target)
        steps = tuple(StepResult(step.id, StepStatus.DONE) for step in plan.steps)
        return HostOutcome(target, ExitCode.DONE, run=RunReport(target, steps, plan=plan))


def main(verb: str, count: int) -> None:
    """One run in this process, and what it took."""
    written = 0
    made_s: list[float] = []

    def write(piece: str) -> None:
        nonlocal written
        written += len(piece)

    if verb in ("check", "differing"):
        report = check(count, write, differing=made_s if verb == "differing" else None)
    else:
        report = Setup(count).run()
        write(fleet_run_text(report.hosts, seconds_s=report.seconds))
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = used.ru_utime + used.ru_stime - sum(made_s)
    spent = {"mb": used.ru_maxrss / 1024, "cpu_s": cpu_s, "characters": written}
    print(json.dumps({"hosts": len(report.hosts), **spent}))


def rows(rounds: int, sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Peak memory and CPU of each further host, at each size against the smallest."""
    table: list[Row] = []
    for verb in ("check", "differing", "setup"):
        found = {size: [_of_its_own(verb, size) for _ in range(rounds)] for size in (1, *sizes)}
        least = sizes[0]
        for size in sizes[1:]:
            memory = {number: [run["mb"] for run in found[number]] for number in sizes}
            each = {number: _each(found, number) for number in sizes}
            name = f"{'check of differing hosts' if verb == 'differing' else verb}, {size} simulated"
            table += [
                Row(f"{name}: peak memory, MB", memory[size], f"{least} hosts", memory[least], scale=1),
                Row(f"{name}: CPU of each more, ms", each[size], f"{least} hosts", each[least], 1.1, digits=1),
            ]
    return table


def _each(found: dict[int, list[dict[str, float]]], size: int) -> list[float]:
    return [(many["cpu_s"] - one["cpu_s"]) / (size - 1) for many, one in zip(found[size], found[1], strict=True)]


def _of_its_own(verb: str, size: int) -> dict[str, float]:
    argv = (sys.executable, "-m", "tests.bench.simulated", verb, str(size))
    print(f"  {verb} of {size} simulated hosts", file=sys.stderr, flush=True)
    answer: dict[str, float] = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)
    return answer


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
