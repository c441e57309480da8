"""gpunode undo: put back what setup changed, from the journal on the host."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options import HostOptions, OutputOptions, verb

if TYPE_CHECKING:
    from gpunode.cli.apply import Carrier
    from gpunode.cli.hosts import Host
    from gpunode.cli.runlog import RunLog
    from gpunode.model.facts import HostFacts
    from gpunode.model.plan import Plan
    from gpunode.model.report import Event, HostOutcome, RunReport


def register(app: typer.Typer) -> None:
    verb(
        app,
        "undo",
        help="Put back what setup changed: files, default runtimes, services. Shows the plan and asks first.",
        examples=("gpunode undo --dry-run -v", "gpunode undo --ssh gpu[01-12] --packages --yes"),
    )(undo)


def undo(
    hosts: HostOptions,
    output: OutputOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", show_default=False)] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan only; write nothing.", show_default=False)
    ] = False,
    packages: Annotated[
        bool,
        typer.Option(
            "--packages", help="Remove the packages, holds and repositories too that setup added.", show_default=False
        ),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Only this run and what came after it.", show_default=False),
    ] = None,
) -> int:
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.output import chosen_format
    from gpunode.errors import UsageError

    chosen_format(output)
    if hosts.recorded:
        raise UsageError(
            "--recorded cannot be undone",
            evidence="the journal and the backups are on the host itself",
            remedy="name the host with --ssh, or leave --recorded out for this machine",
        )
    if not (yes or dry_run or sys.stdin.isatty()):
        raise UsageError(
            "there is no terminal to ask on",
            evidence="undo shows its plan and asks before the first change",
            remedy="add --yes to go on without the question, or look first with --dry-run",
        )
    with open_hosts(hosts) as named:
        return _run(named, hosts, output, carrier(run, packages), _planner(run, packages), ask=not yes, only=dry_run)


Planner = Callable[["Host"], "HostOutcome"]


def _run(
    named: tuple[Host, ...],
    hosts: HostOptions,
    output: OutputOptions,
    carry: Carrier,
    planner: Planner,
    *,
    ask: bool,
    only: bool,
) -> int:
    from gpunode.cli.apply import apply_plans
    from gpunode.cli.output import result_style
    from gpunode.cli.plan import plans_of
    from gpunode.cli.result import finish, look_at, say_problems
    from gpunode.cli.say import say
    from gpunode.cli.setup import agreed, ended_text, show_plans
    from gpunode.errors import ExitCode

    report = look_at(named, hosts, output, planner)
    changes = [h for h in report.hosts if h.plan and not h.plan.empty]
    if only or not any(h.plan for h in report.hosts):
        return finish("undo", report, output, lambda report: plans_of(report, result_style(output)))
    show_plans(report, output)
    say_problems(report)  # before the question: these hosts stay as they are
    if ask and changes and not agreed(changes):
        say("gpunode: nothing was changed")
        return int(ExitCode.FAILED)
    done = apply_plans(named, report, hosts, output, verb="undo", carry=carry)
    return finish("undo", done, output, lambda done: ended_text(done, output), told=len(named) > 1)


def _planner(run: str | None, packages: bool) -> Planner:
    """One host's plan, from facts that no package transaction of a killed gpunode moves any more."""

    def planned(host: Host) -> HostOutcome:
        from gpunode.apply.commands.detached import wait_for_running
        from gpunode.cli.say import say
        from gpunode.errors import ExitCode
        from gpunode.facts.collect import collect
        from gpunode.model.report import HostOutcome

        wait_for_running(host.transport, heard=lambda line: say(f"{host}  {line}"))
        plan = way_back(host, run, packages)(collect(host.transport))
        return HostOutcome(str(host), ExitCode.DONE, plan=plan)

    return planned


def way_back(host: Host, run: str | None, packages: bool) -> Callable[[HostFacts], Plan]:
    """Facts -> the plan, with the journal read anew each time."""
    from gpunode.apply.journal.past import read_past
    from gpunode.catalog.load import load_catalog
    from gpunode.planner.undo.plan import undo_plan

    def decide(facts: HostFacts) -> Plan:
        past = read_past(host.transport, run=run, packages=packages)
        return undo_plan(facts, past, load_catalog(), packages=packages)

    return decide


def carrier(run: str | None, packages: bool) -> Carrier:
    """How one host's undo is carried out; through the same executor, lock and journal as a setup."""
    from gpunode.cli.apply import is_alive, lock_owner, mirror_of
    from gpunode.errors import Drift, ExitCode, GpunodeError
    from gpunode.model.report import HostOutcome, RunReport

    def carry(
        host: Host, plan: Plan, run_id: str, tell: Callable[[Event], None], stop: Callable[[], bool], log: RunLog
    ) -> HostOutcome:
        from gpunode.apply.lock import HostLock
        from gpunode.converge import Convergence
        from gpunode.facts.collect import collect
        from gpunode.model.spec import RebootPolicy

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
            error.remedy = "gpunode undo looks anew and asks again" if drifted else _reworded(error.remedy)
            raise
        return HostOutcome(str(host), report.code, run=report)

    return carry


def ended(plan: Plan, report: RunReport) -> RunReport:
    """The report in undo's words; with something left, it is not a success."""
    from gpunode.errors import ExitCode
    from gpunode.render.wording import count

    report = replace(
        report,
        remedy=_reworded(report.remedy),
        steps=tuple(replace(step, remedy=_reworded(step.remedy)) for step in report.steps),
    )
    if report.code is not ExitCode.DONE or not plan.undo:
        return report
    if plan.undo.left:
        return replace(
            report,
            code=ExitCode.FAILED,
            error=f"{count(len(plan.undo.left), 'thing')} left as it is, the rest is undone",
            evidence="; ".join(kept.text for kept in plan.undo.left),
            remedy="do by hand what stands there; a later gpunode undo does not come back to it",
        )
    nouveau = any(step.id == "undo.kernel.nouveau" for step in report.steps)
    return replace(report, remedy="reboot when it suits: that brings nouveau back") if nouveau else report


def _reworded(text: str) -> str:
    """The rooms below speak of setup, which is what they mostly do."""
    return text.replace("gpunode setup", "gpunode undo")
