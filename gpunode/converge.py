"""Facts, plan, apply; again after a reboot or a package that ships its own config; at most three passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field, replace

from gpunode.apply import survey
from gpunode.apply.commands.detached import OnOutput, nothing_runs, wait_for_running
from gpunode.apply.commands.reboot import ask_for_reboot, reboot_and_wait
from gpunode.apply.execute import execute
from gpunode.apply.journal.entries import Journal
from gpunode.apply.journal.snapshot import before_values
from gpunode.apply.lock import HostLock
from gpunode.apply.script import Host
from gpunode.apply.step import flush
from gpunode.catalog.load import Catalog
from gpunode.errors import Drift, ExitCode, HostLocked, worst
from gpunode.facts.collect import collect, collect_unless
from gpunode.model.bundle import Bundle
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.model.report import Event, EventKind, RunReport, StepResult, StepStatus
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.planner.drift import same_plan
from gpunode.planner.install.bundle import with_bundle
from gpunode.planner.kernel.modules import boot_fault
from gpunode.planner.plan import make_plan
from gpunode.planner.resume import resume_step
from gpunode.remedy import AGAIN, NO_REMEDY, Remedy, RepairAction, gpunode
from gpunode.transport.base import Completed, Transport
from gpunode.values import dataclass

PASSES = 3
REBOOT_WAIT_S = 900.0  # big servers spend minutes in their firmware
REBOOT = ("reboot the host, then run ", AGAIN, " again (--reboot if-needed does both)")


@dataclass(frozen=True)
class RebootTurn:
    """Hosts of a fleet that reboot one after another; a host alone does not wait."""

    # Waits for this host's turn, and calls what it is given every KEEP_S meanwhile; why it may not reboot, or "".
    take: Callable[[Callable[[], None]], str] = lambda keep: ""
    give_back: Callable[[], None] = lambda: None  # it is not rebooted after all
    closed: Callable[[], str] = lambda: ""  # why it may not reboot although it has its turn, or ""


@dataclass(frozen=True)
class HostRun:
    """One run on one host: how it is reached and locked, who is notified, and what stops it."""

    id: str
    transport: Transport
    lock: HostLock
    on_event: Callable[[Event], None]
    stop: Callable[[], bool]
    local: bool = False  # the host is this machine, so its reboot ends us
    mirror: Callable[[str], None] | None = None  # is given every line of the host's journal
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    reboot_turn: RebootTurn = RebootTurn()
    reboot_wait_s: float | None = None  # until the host is back; None: REBOOT_WAIT_S


@dataclass(frozen=True)
class Resume:
    """What goes on after this machine's own reboot."""

    argv: tuple[str, ...]  # must not ask for a reboot again (--reboot never)
    files: tuple[str, ...] = ()  # for that command alone: they go when it has ended
    fault: str = ""  # why it could not be started after the reboot; who reboots runs it then


def converge(
    host_run: HostRun,
    spec: Spec,
    catalog: Catalog,
    *,
    plan: Plan | None = None,
    resume: Resume | None = None,
    bundle: Bundle | None = None,
) -> RunReport:
    """Bring one host to `spec`; `plan`: what was shown and agreed to, or saved, and today's must be the same.

    `bundle`: what packages come from; its file is on the host by now.

    Raises Drift where today's plan is another than `plan`, HostLocked, TransportError, and what facts and
    planner raise.
    """
    return Convergence(
        host_run,
        observe=lambda: collect(host_run.transport),
        quick=quick_look(host_run.transport),
        decide=lambda host, done: with_bundle(make_plan(host, spec, catalog, done), host, bundle),
        policy=spec.reboot,
        saved=plan,
        resume=resume,
    ).run()


# Facts in one round trip, after a script of which the host has to say nothing (`nothing_runs`); else None.
QuickLook = Callable[[str], HostFacts | None]


def quick_look(transport: Transport) -> QuickLook:
    """Of a host over this transport."""
    return lambda first: collect_unless(transport, first)


def settled_facts(transport: Transport, *, on_output: OnOutput, lock: HostLock | None = None) -> HostFacts:
    """Facts that no package transaction of a killed gpunode changes any more.

    Raises HostLocked where it was not killed but is at work, and what `collect` raises.
    """
    facts = quick_look(transport)(nothing_runs())
    if facts is not None:
        return facts
    wait_for_running(transport, on_output=on_output, lock=lock)
    return collect(transport)


@dataclass
class Convergence:
    """One host's way to its spec. How facts and plans come about are arguments, so a test supplies its own."""

    host_run: HostRun
    observe: Callable[[], HostFacts]
    decide: Callable[[HostFacts, frozenset[str]], Plan]  # of fresh facts, and of the steps that this run has done
    policy: RebootPolicy
    saved: Plan | None = None
    resume: Resume | None = None
    quick: QuickLook | None = None  # asked first
    results: list[StepResult] = field(default_factory=list)
    rebooted: bool = False
    ending: Journal | None = None  # of a pass that is over: its last lines go along with what comes next

    def run(self) -> RunReport:
        """Raises as `converge` does; the lock is released in any case, as far as the host can be reached."""
        host, plan = self._look(1)
        if self.saved:
            plan = self._as_shown(self.saved, plan)
        if plan.empty:
            return self._report(plan)
        if not plan.steps and plan.reboot is None:
            return self._by_hand(plan)
        with self.host_run.lock.held((survey.SCRIPT, *survey.words(plan)) if plan.steps else ()) as surveyed:
            report = self._passes(host, plan, surveyed)
            if self.ending:
                self.host_run.lock.release(self.ending.pending())
            return report

    def _as_shown(self, shown: Plan, fresh: Plan) -> Plan:
        """`fresh`, where it is what was agreed to: what runs is never read from a file."""
        try:
            return same_plan(shown, fresh)
        except Drift as error:
            self.host_run.lock.peek()  # another gpunode, at work since, is what changes this host
            raise Drift(
                f"{fresh.target}: the host changed since its plan was shown; nothing was written",
                evidence=error.evidence,
                remedy=Remedy(RepairAction.WAIT, AGAIN, " makes the plan of what is there now, and shows it"),
            ) from error

    def _passes(self, host: HostFacts, plan: Plan, surveyed: Completed | None) -> RunReport:
        for number in range(1, PASSES + 1):
            report = self._pass(number, host, plan, surveyed)
            if report:
                return report
            surveyed = None
            host, plan = self._look(number + 1)
            if plan.empty:
                return self._report(plan)
        if not plan.steps:
            return self._reboot_needed(plan) if plan.reboot else self._by_hand(plan)
        return self._report(
            plan,
            error=f"after {PASSES} passes this keeps coming back: {', '.join(step.id for step in plan.steps)}",
            evidence="; ".join(f"{s.id}: {s.why}" for s in plan.steps),
            remedy=Remedy(
                RepairAction.CONFIGURE,
                "something on the host undoes these steps (configuration management?); ",
                gpunode("plan"),
                " shows them",
            ),
            code=ExitCode.FAILED,
        )

    def _pass(self, number: int, host: HostFacts, plan: Plan, surveyed: Completed | None) -> RunReport | None:
        """One pass; the final report, or None when fresh facts are to decide."""
        if plan.steps:
            self._tell(f"apply, pass {number}")
        before = before_values(host, plan)
        results = self._execute(plan, f"{self.host_run.id}.{number}", before, host.packages.manager, surveyed)
        if any(result.status is not StepStatus.DONE for result in results):
            return self._stopped(plan, results)
        if plan.replan_after:
            return None
        if plan.reboot is None:
            return self._by_hand(plan) if plan.by_hand else self._report(replace(plan, steps=()))
        if self.policy is RebootPolicy.NEVER or self.rebooted:
            return self._reboot_needed(plan)
        return self._console(number, plan) if plan.console else self._reboot(number, plan)

    def _execute(
        self,
        plan: Plan,
        run_id: str,
        before: dict[str, object],
        manager: str | None = None,
        surveyed: Completed | None = None,
    ) -> tuple[StepResult, ...]:
        if not plan.steps:
            return ()
        results = execute(
            plan,
            self.host_run.transport,
            run_id=run_id,
            on_event=self.host_run.on_event,
            stop=self.host_run.stop,
            lock=self.host_run.lock,
            before=before,
            mirror=self.host_run.mirror,
            manager=manager,
            surveyed=surveyed,
            finish=flush if plan.reboot and not plan.replan_after else self._finish,
            pause=self.host_run.pause,
        )
        self.results.extend(results)
        return results

    def _look(self, number: int) -> tuple[HostFacts, Plan]:
        self._tell("detect" if number == 1 else "detect again")
        host = self._quick_look(number) or self._slow_look(number)
        return host, self.decide(host, frozenset(r.id for r in self.results if r.status is StepStatus.DONE))

    def _finish(self, host: Host, journal: Journal) -> None:
        self.ending = journal

    def _quick_look(self, number: int) -> HostFacts | None:
        """The last pass's lines are in the journal before the host is looked at, whoever brings them there."""
        ending, self.ending, found = self.ending, None, None
        if self.quick:
            lines = {"token": self.host_run.lock.host.token, "lines": ending.pending()} if ending else {}
            found = self.quick(nothing_runs(unlocked=number == 1, **lines))
        if found is None and ending:
            flush(self.host_run.lock.host, ending)  # a line that comes twice says the same
        return found

    def _slow_look(self, number: int) -> HostFacts:
        """Facts taken in the middle of a package transaction would be wrong a minute later."""
        on = self.host_run
        if number == 1:
            on.lock.peek()  # read-only: a second gpunode is reported before a plan is made from moving facts
        wait_for_running(on.transport, on_output=lambda line: self._tell(line, EventKind.NOTE), pause=on.pause)
        return self.observe()

    def _console(self, number: int, plan: Plan) -> RunReport:
        """A reboot that nobody attends would only pass MokManager by; what goes on after it can wait there already."""
        return (self._leave_resume(number, plan) if self.host_run.local else None) or self._reboot_needed(plan)

    def _reboot(self, number: int, plan: Plan) -> RunReport | None:
        on = self.host_run
        if on.stop():
            return self._reboot_needed(plan)
        refused = on.reboot_turn.take(on.lock.keep)
        if refused:
            return self._reboot_needed(plan, f"not rebooted: {refused}")
        try:
            fault = boot_fault(self.observe(), plan.spec)
        except Exception:
            on.reboot_turn.give_back()  # no reboot was sent: nobody waits for this host to come back
            raise
        if fault:
            on.reboot_turn.give_back()
            return self._report(
                replace(plan, steps=()),
                error=f"not rebooted: {fault}",
                evidence="the GPUs would be gone after this reboot",
                remedy=Remedy(
                    RepairAction.UPGRADE,
                    AGAIN,
                    " installs its module, built or signed; or choose another kernel in GRUB",
                ),
                code=ExitCode.FAILED,
            )
        # Facts take a while: the run may have been stopped since this host got its turn.
        closed = on.reboot_turn.closed()
        if closed or on.stop():
            on.reboot_turn.give_back()
            return self._reboot_needed(plan, f"not rebooted: {closed or 'no time was left, or the run was stopped'}")
        if on.local:
            return self._reboot_here(number, plan)
        wait_s = on.reboot_wait_s or REBOOT_WAIT_S
        self._tell(f"reboot: {plan.reboot}; waiting until it is back, {wait_s / 60:.0f} minutes at most")
        try:
            reboot_and_wait(on.lock.host, Journal(on.id, on.mirror), wait_s, pause=on.pause, clock=on.clock)
        except HostLocked:
            on.reboot_turn.give_back()  # nor was it here
            raise
        self._tell("is back after the reboot")
        self.rebooted = True
        on.lock.take()  # /run, and the lock in it, went with the reboot
        return None

    def _reboot_here(self, number: int, plan: Plan) -> RunReport:
        stopped = self._leave_resume(number, plan)
        if stopped:
            return stopped
        self._tell(f"reboot: {plan.reboot}")
        ask_for_reboot(self.host_run.lock.host, Journal(self.host_run.id, self.host_run.mirror))
        return self._report(
            replace(plan, steps=()),
            reboot=f"{plan.reboot}: this machine reboots now",
            remedy=Remedy(
                RepairAction.WAIT, "gpunode-resume.service goes on after the boot: journalctl -u gpunode-resume"
            )
            if self.resume
            else NO_REMEDY,
            code=ExitCode.REBOOT_NEEDED,
        )

    def _leave_resume(self, number: int, plan: Plan) -> RunReport | None:
        """A unit that goes on after the boot; the report when it could not be left."""
        if self.resume is None:
            return None
        if self.resume.fault:
            return self._reboot_needed(plan, f"not rebooted, since nothing would go on after it: {self.resume.fault}")
        last = replace(plan, steps=(resume_step(self.resume.argv, self.resume.files),))
        results = self._execute(last, f"{self.host_run.id}.{number}.resume", {})
        bad = any(result.status is not StepStatus.DONE for result in results)
        return self._stopped(plan, results) if bad else None

    def _stopped(self, plan: Plan, results: tuple[StepResult, ...]) -> RunReport:
        bad = next((r for r in results if r.status in (StepStatus.FAILED, StepStatus.ROLLBACK_FAILED)), None)
        if bad is None:
            skipped = ", ".join(r.id for r in results if r.status is StepStatus.SKIPPED)
            return self._report(
                plan,
                error=f"stopped before {skipped}",
                remedy=Remedy(RepairAction.NONE, AGAIN, " goes on from what is there"),
                code=ExitCode.FAILED,
            )
        code = ExitCode.ROLLBACK_FAILED if bad.status is StepStatus.ROLLBACK_FAILED else ExitCode.FAILED
        return self._report(plan, error=f"{bad.id}: {bad.error}", evidence=bad.evidence, remedy=bad.remedy, code=code)

    def _reboot_needed(self, plan: Plan, why: str = "nothing failed; the rest comes after it") -> RunReport:
        again = "a reboot is still asked for after one" if self.rebooted else why
        return self._report(
            replace(plan, steps=()),
            reboot=plan.reboot,
            evidence=again,
            remedy=Remedy(RepairAction.REBOOT, *((plan.console,) if plan.console else REBOOT)),
            code=ExitCode.REBOOT_NEEDED,
        )

    def _by_hand(self, plan: Plan) -> RunReport:
        """All is written, and a daemon that nothing on the host restarts has not read it."""
        return replace(self._report(replace(plan, steps=()), code=ExitCode.REBOOT_NEEDED), by_hand=plan.by_hand)

    def _report(
        self,
        plan: Plan,
        *,
        reboot: str | None = None,
        error: str = "",
        evidence: str = "",
        remedy: Remedy = NO_REMEDY,
        code: ExitCode = ExitCode.DONE,
    ) -> RunReport:
        code = worst((code, plan.code))
        return RunReport(
            self.host_run.transport.target, tuple(self.results), plan, reboot, error, evidence, remedy, code
        )

    def _tell(self, text: str, kind: EventKind = EventKind.PHASE) -> None:
        self.host_run.on_event(Event(kind, self.host_run.transport.target, text))
