"""Hosts that are only names, set up by functions of a test; fleet/run.py, gate and rollout are the real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from gpunode.apply.lock import HostLock, Owner
from gpunode.converge import HostRun
from gpunode.errors import ExitCode, HostLocked
from gpunode.fleet.apply_one import HostWork
from gpunode.fleet.rollout.drain import NodeIdentity, Scheduler
from gpunode.fleet.rollout.gate import Gate
from gpunode.fleet.rollout.policy import Policy, limits
from gpunode.fleet.rollout.rollout import Health, Rollout
from gpunode.fleet.rollout.waves import wave_numbers
from gpunode.fleet.run import run_fleet
from gpunode.model.plan import DRIVER_STEP, Plan, Step
from gpunode.model.report import Event, EventKind, FleetReport, HostOutcome, RunReport, StepResult, StepStatus
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.transport.base import Completed

NOW = datetime(2026, 12, 1, 12, tzinfo=timezone.utc)
STEP = Step(DRIVER_STEP, "title", "why", ())
PLAN = Plan("h", Spec(reboot=RebootPolicy.IF_NEEDED), "then", steps=(STEP,), reboot="nouveau is loaded")


@dataclass
class Named:
    """A transport to nowhere."""

    target: str

    def __str__(self) -> str:
        return self.target

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        raise AssertionError("nothing is run on a host that is only a name")

    def reconnect(self) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


class Lock(HostLock):
    """Nobody's, but for `others`: hosts on which another gpunode is at work."""

    others: Collection[str] = ()

    def peek(self) -> None:
        if self.host.transport.target in self.others:
            raise HostLocked(f"{self.host.transport.target}: another gpunode is at work")


def done(target: str, *, code: ExitCode = ExitCode.DONE, changed: bool = True) -> HostOutcome:
    steps = (StepResult(DRIVER_STEP, StepStatus.DONE),) if changed else ()
    return HostOutcome(target, code, run=RunReport(target, steps, code=code))


def reboot(host_run: HostRun, keep: Callable[[], None] = lambda: None) -> str:
    """As converge asks for its turn."""
    return host_run.reboot_turn.take(keep)


def begins(host_run: HostRun) -> None:
    """As converge begins its first step."""
    host_run.on_event(Event(EventKind.STEP_BEGIN, host_run.transport.target, "title", DRIVER_STEP))


@dataclass
class Fleet:
    """A rollout over `hosts`, in a test's hands."""

    hosts: Sequence[str]
    policy: Policy = field(default_factory=Policy)
    now: Callable[[], datetime] = lambda: NOW
    schedulers: tuple[Scheduler, ...] = ()
    health: Health | None = None
    plan: Plan = PLAN
    idle: Iterable[str] = ()  # hosts that have nothing to do
    left_closed: Iterable[tuple[str, str]] = ()
    others: Collection[str] = ()  # hosts on which another gpunode is at work once ours has ended there
    events: list[Event] = field(default_factory=list)
    waits: list[tuple[str, str]] = field(default_factory=list)
    kept: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)  # what is written down of closed hosts

    def __post_init__(self) -> None:
        busy = [host for host in self.hosts if host not in set(self.idle)]
        sizes, stop = limits(self.policy, len(busy)), threading.Event()
        self.rollout = Rollout(
            Gate(sizes, self.policy.window, interrupted=stop.is_set, now=self.now),
            dict(zip(busy, wave_numbers(sizes.waves), strict=True)),
            self.health,
            self.schedulers,
            {host: NodeIdentity(host, host, host, f"boot-of-{host}") for host in busy},
            stop,
            self.policy.reboot_wait_s,
            left_closed=self.left_closed,
        )

    def run(self, one: HostWork, *, forks: int = 50) -> FleetReport:
        work = self.rollout.host_work(
            one, lambda host, what: self.waits.append((host, what)), lambda *closed: self.kept.append(closed)
        )

        def on_one(transport: Named) -> HostOutcome:
            lock = Lock(transport, Owner("c", 1, "t"), lambda _: True)
            lock.others = self.others
            run = HostRun("r", transport, lock, self.events.append, self.rollout.stop.is_set, pause=lambda _: None)
            return work(run, replace(self.plan, target=transport.target))

        return run_fleet(
            [Named(host) for host in self.hosts],
            on_one,
            forks=forks,
            on_done=lambda _: None,
            stop=self.rollout.stop,
            on_stop=self.rollout.gate.stop,
        )


def names(count: int) -> list[str]:
    return [f"gpu{number:02}" for number in range(1, count + 1)]
