"""How one host goes through a rollout: its turn, its drain, its setup, its health, and what that means for the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, field, replace
from functools import partial
from typing import NamedTuple

from gpunode.advice import typed
from gpunode.converge import HostRun, RebootTurn
from gpunode.errors import GpunodeError, HostBusy, HostLocked
from gpunode.fleet.apply_one import HostWork
from gpunode.fleet.rollout.disruption import disruption
from gpunode.fleet.rollout.drain import NodeIdentity, Scheduler
from gpunode.fleet.rollout.gate import Gate, failed
from gpunode.fleet.rollout.health import with_health
from gpunode.fleet.run import not_begun, outcome_of
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, Event, EventKind, HostOutcome
from gpunode.model.run_record import Key
from gpunode.values import dataclass


@dataclass(frozen=True)
class Health:
    """What `check` says of a host now, held against what it said before."""

    check: Callable[[str], CheckReport]  # of the host of that name, from fresh facts
    before: Mapping[str, frozenset[Key]]  # its failures before the run
    owing: Collection[str] = ()  # hosts that an earlier run changed and that did not end well: looked at in any case


Keep = Callable[[str, tuple[str, ...]], None]  # a host, and the commands that let work come to it again


@dataclass
class Rollout:
    """One run over a fleet. A host that is in no wave has nothing to do, and does it at once."""

    gate: Gate
    waves: Mapping[str, int]  # host -> its wave
    health: Health | None = None
    schedulers: tuple[Scheduler, ...] = ()
    nodes: Mapping[str, NodeIdentity] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)  # Ctrl-C was pressed
    reboot_wait_s: float | None = None  # None: as long as one host alone has
    left_closed: InitVar[Iterable[tuple[str, str]]] = ()  # as `closed`, by the run that this one goes on with
    _closed: dict[str, tuple[str, ...]] = field(default_factory=dict)  # host -> commands; each by its own thread
    _keep: Keep = lambda target, commands: None

    def __post_init__(self, left_closed: Iterable[tuple[str, str]]) -> None:
        for target, command in left_closed:
            self._closed[target] = (*self._closed.get(target, ()), command)

    def host_work(self, one: HostWork, waits: Callable[[str, str], None], keep: Keep | None = None) -> HostWork:
        """`one`, in its turn. `waits`: is told which host waits, and for what; `keep`: what lets work come to it again,
        before no more does.
        """
        self._keep = keep or self._keep

        def work(host_run: HostRun, plan: Plan) -> HostOutcome:
            target = host_run.transport.target
            if target not in self.waves:
                return one(host_run, plan)
            wave = self.waves[target]
            why = self.gate.admit(wave, lambda what: waits(target, what))
            if why:
                outcome = not_begun(target, why)
            else:
                way = _OneHost(self, host_run, plan, one, lambda what: waits(target, what))
                outcome = way.outcome()
            self.gate.ended(wave, outcome)
            return outcome

        return work

    def with_health(self, host_run: HostRun, outcome: HostOutcome, *, touched: bool = False) -> HostOutcome:
        """`outcome`, as a failure where the host is worse than it was before anybody touched it."""
        target, health = host_run.transport.target, self.health
        if health is None or not (touched or target in health.owing):
            return outcome
        host_run.on_event(Event(EventKind.PHASE, target, "check, against what it was before"))
        before = health.before.get(target, frozenset())
        return with_health(outcome, before, lambda: health.check(target), host_run.pause)

    @property
    def closed(self) -> tuple[tuple[str, str], ...]:
        """Hosts to which this run let no work come, and has not opened again; each with the command that does."""
        return tuple((target, command) for target, commands in tuple(self._closed.items()) for command in commands)

    def note_closed(self, target: str, command: tuple[str, ...]) -> None:
        self._note(target, tuple(dict.fromkeys((*self._closed.get(target, ()), typed(*command)))))

    def note_open(self, target: str, command: tuple[str, ...]) -> None:
        self._note(target, tuple(one for one in self._closed.get(target, ()) if one != typed(*command)))

    def closed_by_gpunode(self, target: str, command: tuple[str, ...]) -> bool:
        """Whether `command` undoes what gpunode did. What a record says is only compared with it, and never run."""
        return typed(*command) in self._closed.get(target, ())

    def _note(self, target: str, commands: tuple[str, ...]) -> None:
        self._closed[target] = commands
        self._keep(target, commands)


class _Back(NamedTuple):
    """Who lets work come to the host again, and by which command."""

    scheduler: Scheduler
    command: tuple[str, ...]
    before: bool  # an earlier run closed it, and may have changed the host


@dataclass
class _OneHost:
    """One host at work."""

    rollout: Rollout
    host_run: HostRun
    plan: Plan
    one: HostWork
    waits: Callable[[str], None]
    began: bool = False  # a step
    rebooted: bool = False  # it has its turn, and makes use of it

    @property
    def target(self) -> str:
        return self.host_run.transport.target

    @property
    def touched(self) -> bool:
        return self.began or self.rebooted

    def outcome(self) -> HostOutcome:
        """A host that was changed and then found busy is neither skipped nor well."""
        outcome = outcome_of(self.target, lambda _: self._go())
        return replace(outcome, untouched=None) if self.touched else outcome

    def _go(self) -> HostOutcome:
        back: list[_Back] = []
        well = False
        try:
            if stopped := self._drained(back):
                return not_begun(self.target, stopped)
            outcome = self._worked()
            well = not failed(outcome) and not (outcome.run and outcome.run.reboot)
            return outcome
        finally:
            self._open_again(back, well=well)

    def _drained(self, back: list[_Back]) -> str:
        """Drain it where its plan asks for that. Why it does not begin after all: the run stopped meanwhile.

        Raises HostBusy.
        """
        why = disruption(self.plan) if self.rollout.schedulers else ""
        if not why:
            return ""
        try:
            self._drain(why, back)
        except HostBusy:
            if stopped := self.rollout.gate.closed():
                return stopped
            raise
        return self.rollout.gate.closed()

    def _drain(self, why: str, back: list[_Back]) -> None:
        node = self.rollout.nodes[self.target]
        for scheduler in self.rollout.schedulers:
            self._tell(f"drain by {scheduler.name}, before {why}")
            closed = scheduler.close(node, partial(self.rollout.note_closed, self.target))
            if not closed.before or self.rollout.closed_by_gpunode(self.target, closed.reopen):
                back.append(_Back(scheduler, closed.reopen, closed.before))
            if closed.failed:
                raise closed.failed
            scheduler.clear(node, closed, lambda: bool(self.rollout.gate.closed()))

    def _worked(self) -> HostOutcome:
        turn = RebootTurn(self._take_turn, self._give_back, self.rollout.gate.closed)
        run = replace(self.host_run, reboot_wait_s=self.rollout.reboot_wait_s)
        outcome = self.one(replace(run, on_event=self._event, reboot_turn=turn), self.plan)
        changed = outcome.run is not None and outcome.run.changed
        return self.rollout.with_health(self.host_run, outcome, touched=changed or self.rebooted)

    def _take_turn(self, keep: Callable[[], None]) -> str:
        refused = self.rollout.gate.reboot(self.target, self.waits, keep)
        self.rebooted = not refused
        return refused

    def _give_back(self) -> None:
        self.rebooted = False
        self.rollout.gate.give_back(self.target)

    def _event(self, event: Event) -> None:
        self.began |= event.kind is EventKind.STEP_BEGIN
        self.host_run.on_event(event)

    def _open_again(self, back: Sequence[_Back], *, well: bool) -> None:
        """Work comes to a host that is well, and to one that no run has touched; to no other. Told when all is done:
        who cannot be told keeps no node closed.
        """
        stays = []
        for scheduler, command, before in reversed(back):
            opens = well or not (self.touched or before)
            failed = self._opened(scheduler, command, before) if opens else "its run did not end well"
            if failed:
                stays.append(f"stays closed to work ({failed}); once it is well: {typed(*command)}")
            else:
                self.rollout.note_open(self.target, command)
        for text in stays:
            self._tell(text)

    def _opened(self, scheduler: Scheduler, command: tuple[str, ...], before: bool) -> str:
        """Why work does not come to it again, or "". Where we worked, the lock was given back before the check: another
        gpunode may be at work by now, which found the node closed and counts on that.
        """
        if self.touched or before:
            try:
                self.host_run.lock.peek()
            except HostLocked as error:
                return error.problem
            except GpunodeError:
                pass  # it cannot be asked, and has just been found well
        return scheduler.reopen(command)

    def _tell(self, text: str) -> None:
        self.host_run.on_event(Event(EventKind.PHASE, self.target, text))
