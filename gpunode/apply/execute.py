"""Plan -> what happened. Nothing is written before every file of the plan is known to be as the plan saw it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from gpunode.apply.journal.entries import Journal
from gpunode.apply.journal.for_undo import to_entry
from gpunode.apply.journal.prune import prune
from gpunode.apply.lock import HostLock
from gpunode.apply.paths import inventory_path
from gpunode.apply.script import SHORT_S, Host, advice_on, parse_reply
from gpunode.apply.step import AFTER_FILES, StepRun, flush
from gpunode.apply.survey import Open, survey
from gpunode.errors import Drift, StepFailed
from gpunode.model.action import Run
from gpunode.model.plan import Plan, Step
from gpunode.model.report import Event, EventKind, StepResult, StepStatus
from gpunode.model.spec import PARTS
from gpunode.packages.registry import backend
from gpunode.remedy import AGAIN, NO_REMEDY, Remedy, RepairAction
from gpunode.transport.base import Completed, Transport
from gpunode.values import dataclass

OnEvent = Callable[[Event], None]

# In a user's directories root's rights would be that user's to use.
MANUAL_STEP = "restore the files named here manually, a user's own as that user"


def execute(
    plan: Plan,
    transport: Transport,
    *,
    run_id: str,
    on_event: OnEvent,
    stop: Callable[[], bool],
    lock: HostLock | None = None,
    before: Mapping[str, object] | None = None,
    mirror: Callable[[str], None] | None = None,
    manager: str | None = None,
    surveyed: Completed | None = None,
    finish: Callable[[Host, Journal], None] = flush,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[StepResult, ...]:
    """Carry the plan out, step by step; one result a step, in the plan's order.

    A step whose action fails is rolled back (files first, then its undo) and the rest is skipped; then whatever was
    done only to serve steps that were not done is rolled back as well. The rest is skipped, too, when `stop()` turns
    true between two steps. A script that outlives its limit while it writes a file is ended, and its step has failed.
    Where nobody can say that it has ended (state D, run as a user), the host counts as unreachable: the script might
    overwrite what was restored meanwhile. `before` goes to the journal for a later undo; `mirror` gets every journal
    line; `manager` is the host's package manager, None where gpunode knows none; `surveyed` is what survey.SCRIPT
    answered when the lock was taken, None where it was not asked; `finish` brings the journal's last lines there, when
    all went well. Raises Drift before the first byte when a file is not as the plan saw it, TransportError when the
    host is unreachable (the journal shows the open step; the next run picks it up), and HostLocked when the lock was
    taken over.
    """
    host = lock.host if lock else Host(transport)
    journal = Journal(run_id, mirror)
    found = survey(host, plan, surveyed)
    prune(host, run_id, found.directories)
    _sweep(host, found.left)
    journal.add("run-begin", schema=1, before=dict(before or {}))
    _supersede(journal, plan, found.left)
    _take_inventory(host, plan, run_id, manager)
    work = _Work(plan, host, journal, on_event, pause, clock, lock, found.left)
    results: list[StepResult] = []
    status = "done"
    for step in plan.steps:
        if status == "done" and stop():
            status = "stopped"
        if status != "done":
            results.append(StepResult(step.id, StepStatus.SKIPPED))
            continue
        results.append(work.carry_out(step))
        if results[-1].status is not StepStatus.DONE:
            status = "failed"
    if status == "failed":
        results = work.roll_back(results)
    journal.add("run-end", status=status)
    if status == "done":
        finish(host, journal)
        return tuple(results)
    try:
        flush(host, journal)
    except StepFailed as error:
        # A full disk stopped the step and now this line: the step's report, with its remedy, must not be lost for it.
        on_event(Event(EventKind.NOTE, plan.target, error.problem))
    return tuple(results)


@dataclass(frozen=True)
class _Work:
    plan: Plan
    host: Host
    journal: Journal
    on_event: OnEvent
    pause: Callable[[float], None]
    clock: Callable[[], float]
    lock: HostLock | None
    left: Open
    ran: dict[str, StepRun] = field(default_factory=dict)  # by the step's id

    def carry_out(self, step: Step) -> StepResult:
        self._tell(EventKind.STEP_BEGIN, step)
        begin = self.clock()
        self.journal.add("step-begin", step=step.id, title=step.title, for_undo=to_entry(step.for_undo))
        earlier = tuple(w for (_, left_id), files in self.left.items() if left_id == step.id for w in files)
        run = StepRun(
            self.host, self.journal, step, lambda line: self._note(step, line), self.pause, self.lock, earlier
        )
        self.ran[step.id] = run
        try:
            for action in step.actions:
                run.perform(action)
            result = StepResult(step.id, StepStatus.DONE)
        except (StepFailed, Drift) as error:
            result = _failed(step, run, error)
        result = replace(result, commands=tuple(run.commands), seconds=self.clock() - begin)
        self._end(step, result)
        return result

    def roll_back(self, results: list[StepResult]) -> list[StepResult]:
        """What was done for steps that did not run is undone, newest first: no repository stays without its packages.

        Where the failed step itself could not be rolled back, packages may be half there: their repository stays then.
        """
        now = {result.id: result for result in results}
        if any(result.status is StepStatus.ROLLBACK_FAILED for result in results):
            return results
        for step in reversed(self.plan.steps):
            served = {now[other.id].status for other in self._served(step)}
            if now[step.id].status is StepStatus.DONE and served and StepStatus.DONE not in served:
                now[step.id] = self._roll_back(step, now[step.id])
        return [now[result.id] for result in results]

    def _served(self, step: Step) -> list[Step]:
        return [other for other in self.plan.steps if other.installs in step.serves]

    def _roll_back(self, step: Step, done: StepResult) -> StepResult:
        why = f"rolled back: {', '.join(other.id for other in self._served(step))} was not done"
        faults = self.ran[step.id].roll_back()
        status = StepStatus.ROLLBACK_FAILED if faults else StepStatus.UNDONE
        result = replace(
            done,
            status=status,
            error=f"{why}; the rollback failed: {'; '.join(faults)}" if faults else why,
            remedy=Remedy(RepairAction.CONFIGURE, f"{MANUAL_STEP}, then run ", AGAIN, " again")
            if faults
            else NO_REMEDY,
        )
        # "failed" is the journal's word for a step of which nothing stands.
        self.journal.add("step-end", step=step.id, status="rollback-failed" if faults else "failed", error=result.error)
        self._tell(EventKind.STEP_END, step, status, 0.0, result.error)
        return result

    def _end(self, step: Step, result: StepResult) -> None:
        """The end goes along with the next script; a killed earlier try of this step ends with it."""
        for run_id, left_id in self.left:
            if left_id == step.id:
                self.journal.add("step-end", run=run_id, step=step.id, status="superseded")
        self.journal.add("step-end", step=step.id, status=result.status.value, error=result.error)
        self._tell(EventKind.STEP_END, step, result.status, result.seconds, result.error)

    def _tell(
        self, kind: EventKind, step: Step, status: StepStatus | None = None, seconds: float = 0.0, error: str = ""
    ) -> None:
        self.on_event(Event(kind, self.plan.target, error or step.title, step.id, status, seconds))

    def _note(self, step: Step, line: str) -> None:
        self.on_event(Event(EventKind.NOTE, self.plan.target, line, step.id))


def _failed(step: Step, run: StepRun, error: StepFailed | Drift) -> StepResult:
    faults = run.roll_back()
    if faults:
        return StepResult(
            step.id,
            StepStatus.ROLLBACK_FAILED,
            error=f"{error.problem}; the rollback failed too: {'; '.join(faults)}",
            evidence=error.evidence,
            remedy=Remedy(RepairAction.CONFIGURE, f"{_by_hand(faults)}, then run ", AGAIN, " again"),
        )
    return StepResult(step.id, StepStatus.FAILED, error=error.problem, evidence=error.evidence, remedy=error.remedy)


def _by_hand(faults: list[str]) -> str:
    """What the rollback leaves to do: files, or a command that failed once the files were restored."""
    first = next(filter(None, map(advice_on, faults)), "")
    if all(fault.startswith(AFTER_FILES) for fault in faults):
        return f"{first}run manually the command that failed in the rollback"
    return f"{first}{MANUAL_STEP}, restart what reads them"


def _sweep(host: Host, left: Open) -> None:
    """A killed write leaves its text next to the file. The same write would replace it; this run may be another."""
    written = dict.fromkeys((file.path, file.run_as) for files in left.values() for file in files)
    if written:
        words = (word for pair in written for word in pair)
        parse_reply(host.run("files/sweep", host.token, *words, timeout_s=SHORT_S))


def _take_inventory(host: Host, plan: Plan, run_id: str, manager: str | None) -> None:
    """The names of all packages, before the first is installed: undo must tell what came along from what was there."""
    runs = (action for step in plan.steps for action in step.actions if isinstance(action, Run))
    if manager and plan.undo is None and any(run.packages for run in runs):
        parse_reply(host.run("packages/inventory", host.token, inventory_path(run_id), backend(manager).names_script))


def _supersede(journal: Journal, plan: Plan, left: Open) -> None:
    """Close steps that a killed run left open and that fresh facts no longer ask for: they turned out right.

    Otherwise a failure of the same step months later would bring back today's bytes.
    """
    wanted = {step.id for step in plan.steps}
    for run_id, step in left:
        if step not in wanted and plan.spec.only == PARTS:
            journal.add("step-end", run=run_id, step=step, status="superseded")
