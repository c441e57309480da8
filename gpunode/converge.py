"""Facts, plan, apply; again after a reboot or a package that brings its own config; at most three passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gpunode.apply.commands.detached import wait_for_running
from gpunode.apply.commands.reboot import ask_for_reboot, reboot_and_wait
from gpunode.apply.execute import execute
from gpunode.apply.journal.entries import Journal
from gpunode.apply.journal.snapshot import before_values
from gpunode.apply.lock import Alive, HostLock, Owner
from gpunode.apply.resolver_preview import with_answers
from gpunode.catalog.load import Catalog
from gpunode.errors import ExitCode
from gpunode.facts.collect import collect
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.model.report import Event, EventKind, RunReport, StepResult, StepStatus
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.planner.drift import same_plan
from gpunode.planner.kernel.modules import boot_fault
from gpunode.planner.plan import make_plan
from gpunode.planner.resume import resume_step
from gpunode.remedy import AGAIN, NO_REMEDY, Remedy, RepairAction, gpunode
from gpunode.transport.base import Transport

PASSES = 3
REBOOT_WAIT_S = 900.0  # big servers spend minutes in their firmware
REBOOT = ("reboot the host, then run ", AGAIN, " again (--reboot if-needed does both)")


def converge(
    transport: Transport,
    spec: Spec,
    catalog: Catalog,
    *,
    confirm: Callable[[Plan], bool],
    on_event: Callable[[Event], None],
    run_id: str,
    owner: Owner,
    alive: Alive,
    local: bool,
    stop: Callable[[], bool],
    plan: Plan | None = None,
    resume_argv: tuple[str, ...] = (),
    resume_files: tuple[str, ...] = (),
    mirror: Callable[[str], None] | None = None,
) -> RunReport:
    """Bring one host to `spec`; `plan`: what was shown or saved, and today's must be the same.

    The first plan is shown to `confirm` before anything is written. `local`: the host is this machine, so its reboot
    ends us and `resume_argv` goes on after it; that command must not ask for a reboot again (--reboot never).
    `resume_files` are only for that command, and go when it has ended.
    Raises Drift where today's plan is another than `plan`, HostLocked, TransportError, and what facts and
    planner raise.
    """
    return Convergence(
        transport,
        observe=lambda: collect(transport),
        decide=lambda host: make_plan(host, spec, catalog),
        policy=spec.reboot,
        confirm=confirm,
        on_event=on_event,
        run_id=run_id,
        lock=HostLock(transport, owner, alive),
        local=local,
        stop=stop,
        saved=plan,
        resume_argv=resume_argv,
        resume_files=resume_files,
        mirror=mirror,
    ).run()


@dataclass
class Convergence:
    """One host's way to its spec. How facts and plans come about are arguments, so a test brings its own."""

    transport: Transport
    observe: Callable[[], HostFacts]
    decide: Callable[[HostFacts], Plan]
    policy: RebootPolicy
    confirm: Callable[[Plan], bool]
    on_event: Callable[[Event], None]
    run_id: str
    lock: HostLock
    local: bool
    stop: Callable[[], bool]
    saved: Plan | None = None
    resume_argv: tuple[str, ...] = ()
    resume_files: tuple[str, ...] = ()
    mirror: Callable[[str], None] | None = None
    pause: Callable[[float], None] = time.sleep
    results: list[StepResult] = field(default_factory=list)
    rebooted: bool = False

    def run(self) -> RunReport:
        """Raises as `converge` does; the lock is given back in any case."""
        self.lock.peek()  # read-only: another gpunode at work is told before a plan is made from moving facts
        host, plan = self._look(1)
        if self.saved:
            plan = same_plan(self.saved, plan)  # fresh facts, fresh bytes: what runs is never read from a file
        if plan.empty:
            return self._report(plan)
        if not plan.steps and plan.reboot is None:
            return self._by_hand(plan)
        if not self.confirm(with_answers(plan, self.transport)):
            return self._report(plan, error="not confirmed: nothing was changed", code=ExitCode.FAILED)
        self.lock.take()
        try:
            return self._passes(host, plan)
        finally:
            self.lock.release()

    def _passes(self, host: HostFacts, plan: Plan) -> RunReport:
        for number in range(1, PASSES + 1):
            report = self._pass(number, host, plan)
            if report:
                return report
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

    def _pass(self, number: int, host: HostFacts, plan: Plan) -> RunReport | None:
        """One pass; the final report, or None when fresh facts shall decide."""
        if plan.steps:
            self._tell(f"apply, pass {number}")
        results = self._execute(plan, f"{self.run_id}.{number}", before_values(host, plan), host.packages.manager)
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
        self, plan: Plan, run_id: str, before: dict[str, object], manager: str | None = None
    ) -> tuple[StepResult, ...]:
        if not plan.steps:
            return ()
        results = execute(
            plan,
            self.transport,
            run_id=run_id,
            on_event=self.on_event,
            stop=self.stop,
            lock=self.lock,
            before=before,
            mirror=self.mirror,
            manager=manager,
            pause=self.pause,
        )
        self.results.extend(results)
        return results

    def _look(self, number: int) -> tuple[HostFacts, Plan]:
        """Facts taken in the middle of a package transaction would be wrong a minute later."""
        wait_for_running(self.transport, heard=lambda line: self._tell(line, EventKind.NOTE), pause=self.pause)
        self._tell("detect" if number == 1 else "detect again")
        host = self.observe()
        return host, self.decide(host)

    def _console(self, number: int, plan: Plan) -> RunReport:
        """A reboot that nobody attends would only pass MokManager by; what goes on after it can wait there already."""
        return (self._leave_resume(number, plan) if self.local else None) or self._reboot_needed(plan)

    def _reboot(self, number: int, plan: Plan) -> RunReport | None:
        if self.stop():
            return self._reboot_needed(plan)
        fault = boot_fault(self.observe(), plan.spec)
        if fault:
            return self._report(
                replace(plan, steps=()),
                error=f"not rebooted: {fault}",
                evidence="the GPUs would be gone after this reboot",
                remedy=Remedy(
                    RepairAction.UPGRADE, AGAIN, " brings its module, built or signed; or choose another kernel in GRUB"
                ),
                code=ExitCode.FAILED,
            )
        if self.local:
            return self._reboot_here(number, plan)
        self._tell(f"reboot: {plan.reboot}")
        reboot_and_wait(self.lock.host, Journal(self.run_id, self.mirror), REBOOT_WAIT_S, pause=self.pause)
        self.rebooted = True
        self.lock.take()  # /run, and the lock in it, went with the reboot
        return None

    def _reboot_here(self, number: int, plan: Plan) -> RunReport:
        stopped = self._leave_resume(number, plan)
        if stopped:
            return stopped
        self._tell(f"reboot: {plan.reboot}")
        ask_for_reboot(self.lock.host, Journal(self.run_id, self.mirror))
        return self._report(
            replace(plan, steps=()),
            reboot=f"{plan.reboot}: this machine reboots now",
            remedy=Remedy(
                RepairAction.WAIT, "gpunode-resume.service goes on after the boot: journalctl -u gpunode-resume"
            )
            if self.resume_argv
            else NO_REMEDY,
            code=ExitCode.REBOOT_NEEDED,
        )

    def _leave_resume(self, number: int, plan: Plan) -> RunReport | None:
        """A unit that goes on after the boot; the report when it could not be left."""
        if not self.resume_argv:
            return None
        last = replace(plan, steps=(resume_step(self.resume_argv, self.resume_files),))
        results = self._execute(last, f"{self.run_id}.{number}.resume", {})
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

    def _reboot_needed(self, plan: Plan) -> RunReport:
        again = "a reboot is still asked for after one" if self.rebooted else "nothing failed; the rest comes after it"
        return self._report(
            replace(plan, steps=()),
            reboot=plan.reboot,
            evidence=again,
            remedy=Remedy(RepairAction.REBOOT, *((plan.console,) if plan.console else REBOOT)),
            code=ExitCode.REBOOT_NEEDED,
        )

    def _by_hand(self, plan: Plan) -> RunReport:
        """All is written, and a daemon that nothing on the host starts again has not read it."""
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
        return RunReport(self.transport.target, tuple(self.results), plan, reboot, error, evidence, remedy, code)

    def _tell(self, text: str, kind: EventKind = EventKind.PHASE) -> None:
        self.on_event(Event(kind, self.transport.target, text))
