"""One host's undo carried out, through the same executor, lock and journal as a setup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from gpunode.apply.containers import read_containers
from gpunode.apply.journal.past import read_past
from gpunode.catalog.load import load_catalog
from gpunode.converge import Convergence, HostRun, quick_look
from gpunode.errors import Drift, ExitCode, GpunodeError, StepFailed
from gpunode.facts.collect import collect
from gpunode.fleet.apply_one import HostWork
from gpunode.model.action import RemoveFile
from gpunode.model.containers import Container
from gpunode.model.facts import HostFacts
from gpunode.model.past import Past
from gpunode.model.plan import Plan, Undoing
from gpunode.model.report import HostOutcome, RunReport
from gpunode.model.spec import RebootPolicy
from gpunode.planner.kernel.setup import NOUVEAU_FILE
from gpunode.planner.undo.containers import questions
from gpunode.planner.undo.plan import undo_plan
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.wording import count
from gpunode.transport.base import Transport
from gpunode.values import dataclass


@dataclass(frozen=True)
class Asked:
    """What of the past is to be undone."""

    run: str | None = None  # this one and what came after it; None: all
    packages: bool = False
    allow_loss: bool = False  # containers that need what goes do not keep it


def undo_planner(transport: Transport, asked: Asked) -> Callable[[HostFacts], Plan]:
    """Facts -> the plan, with the journal read and the containers looked for anew each time."""

    def decide(facts: HostFacts) -> Plan:
        past = read_past(transport, run=asked.run, packages=asked.packages)
        return undo_plan(
            facts,
            past,
            load_catalog(),
            packages=asked.packages,
            containers=_containers(transport, facts, past, asked),
            allow_loss=asked.allow_loss,
        )

    return decide


def _containers(transport: Transport, facts: HostFacts, past: Past, asked: Asked) -> tuple[Container, ...]:
    try:
        return read_containers(transport, questions(facts, past))
    except StepFailed:
        if asked.allow_loss:
            return ()  # they would only be named
        raise


def host_work(asked: Asked) -> HostWork:
    """How one host's undo is carried out; through the same executor, lock and journal as a setup."""

    def host_work(host_run: HostRun, plan: Plan) -> HostOutcome:
        transport = host_run.transport
        if plan.empty:
            return HostOutcome(transport.target, ExitCode.DONE, run=RunReport(transport.target, plan=plan))
        decide = undo_planner(transport, asked)
        way = Convergence(
            host_run,
            observe=lambda: collect(transport),
            decide=lambda host, _: decide(host),
            policy=RebootPolicy.NEVER,
            saved=plan,
            quick=quick_look(transport),
        )
        with undo_goes_on():
            report = ended(plan, way.run())
        return HostOutcome(transport.target, report.code, run=report)

    return host_work


def _retried(undo: Undoing) -> Remedy:
    if undo.pending:
        return Remedy(RepairAction.NONE, "fix what is listed there; a later ", gpunode("undo"), " tries it again")
    again = gpunode("undo")
    return Remedy(RepairAction.NONE, "undo manually what is listed there; a later ", again, " does not try it again")


@contextmanager
def undo_goes_on() -> Iterator[None]:
    """What fails in the rooms below, which mostly set up, is to be tried again with undo."""
    try:
        yield
    except Drift as error:
        error.remedy = Remedy(RepairAction.NONE, gpunode("undo"), " probes again and asks again")
        raise
    except GpunodeError as error:
        error.remedy = error.remedy.during("undo")
        raise


def ended(plan: Plan, report: RunReport) -> RunReport:
    """The report of an undo; with something left, it is not a success."""
    report = replace(
        report,
        remedy=report.remedy.during("undo"),
        steps=tuple(replace(step, remedy=step.remedy.during("undo")) for step in report.steps),
    )
    if report.code not in (ExitCode.DONE, ExitCode.REBOOT_NEEDED) or not plan.undo:
        return report
    if plan.undo.left:
        return replace(
            report,
            code=ExitCode.FAILED,
            error=f"{count(len(plan.undo.left), 'thing')} not undone, the rest is undone",
            evidence="; ".join(kept.text for kept in plan.undo.left),
            remedy=_retried(plan.undo),
        )
    nouveau = any(
        isinstance(action, RemoveFile) and action.path == NOUVEAU_FILE for step in plan.steps for action in step.actions
    )
    back = Remedy(RepairAction.REBOOT, "reboot when it suits: that brings nouveau back")
    return replace(report, remedy=back) if nouveau else report
