"""One host's undo carried out, through the same executor, lock and journal as a setup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpunode.apply.journal.past import read_past
from gpunode.apply.lock import HostLock
from gpunode.catalog.load import load_catalog
from gpunode.converge import Convergence
from gpunode.errors import Drift, ExitCode, GpunodeError
from gpunode.facts.collect import collect
from gpunode.fleet.apply_one import Carrier, is_alive, lock_owner, mirror_of
from gpunode.fleet.host import Host
from gpunode.fleet.run_log import RunLog
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.model.report import Event, HostOutcome, RunReport
from gpunode.model.spec import RebootPolicy
from gpunode.planner.undo.plan import undo_plan
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.wording import count


def way_back(host: Host, run: str | None, packages: bool) -> Callable[[HostFacts], Plan]:
    """Facts -> the plan, with the journal read anew each time."""

    def decide(facts: HostFacts) -> Plan:
        past = read_past(host.transport, run=run, packages=packages)
        return undo_plan(facts, past, load_catalog(), packages=packages)

    return decide


def carrier(run: str | None, packages: bool) -> Carrier:
    """How one host's undo is carried out; through the same executor, lock and journal as a setup."""

    def carry(
        host: Host, plan: Plan, run_id: str, tell: Callable[[Event], None], stop: Callable[[], bool], log: RunLog
    ) -> HostOutcome:
        if plan.empty:
            return HostOutcome(str(host), ExitCode.DONE, run=RunReport(str(host), plan=plan))
        way = Convergence(
            host.transport,
            observe=lambda: collect(host.transport),
            decide=way_back(host, run, packages),
            policy=RebootPolicy.NEVER,
            confirm=lambda _plan: True,  # it was shown and agreed to; today's must be the same
            on_event=tell,
            run_id=run_id,
            lock=HostLock(host.transport, lock_owner(), is_alive),
            local=host.local,
            stop=stop,
            saved=plan,
            mirror=mirror_of(log, host),
        )
        try:
            report = ended(plan, way.run())
        except GpunodeError as error:
            drifted = isinstance(error, Drift)
            anew = Remedy(RepairAction.NONE, gpunode("undo"), " looks anew and asks again")
            error.remedy = anew if drifted else error.remedy.during("undo")
            raise
        return HostOutcome(str(host), report.code, run=report)

    return carry


def ended(plan: Plan, report: RunReport) -> RunReport:
    """The report in undo's words; with something left, it is not a success."""
    report = replace(
        report,
        remedy=report.remedy.during("undo"),
        steps=tuple(replace(step, remedy=step.remedy.during("undo")) for step in report.steps),
    )
    if report.code is not ExitCode.DONE or not plan.undo:
        return report
    if plan.undo.left:
        return replace(
            report,
            code=ExitCode.FAILED,
            error=f"{count(len(plan.undo.left), 'thing')} left as it is, the rest is undone",
            evidence="; ".join(kept.text for kept in plan.undo.left),
            remedy=Remedy(
                RepairAction.NONE,
                "do by hand what stands there; a later ",
                gpunode("undo"),
                " does not come back to it",
            ),
        )
    nouveau = any(step.for_undo.initramfs for step in plan.steps)
    back = Remedy(RepairAction.REBOOT, "reboot when it suits: that brings nouveau back")
    return replace(report, remedy=back) if nouveau else report
