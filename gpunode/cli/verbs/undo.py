"""gpunode undo: roll back what setup changed, from the journal on the host."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import LiveOptions, OutputOptions, option
from gpunode.cli.options.rollout import WaveOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.fleet.apply_one import HostWork
    from gpunode.fleet.host import Host
    from gpunode.fleet.undo_one import Asked
    from gpunode.model.report import HostOutcome


def register(app: typer.Typer) -> None:
    verb(
        app,
        "undo",
        help="Roll back what setup changed: files, default runtimes, services. Shows the plan and asks first.",
        examples=("gpunode undo --dry-run -v", "gpunode undo --ssh gpu[01-12] --packages --yes"),
    )(undo)


def undo(
    hosts: LiveOptions,
    fleet: WaveOptions,
    output: OutputOptions,
    yes: Annotated[bool, option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, option("--dry-run", help="Show the plan only; write nothing.")] = False,
    packages: Annotated[
        bool,
        option("--packages", help="Also remove the packages, pins and repositories that setup added."),
    ] = False,
    allow_container_loss: Annotated[
        bool,
        option(
            "--allow-container-loss",
            help="Remove also what containers still use: those are named, and do not start again.",
        ),
    ] = False,
    run: Annotated[
        str | None,
        option("--run", metavar="ID", help="Only this run and what came after it."),
    ] = None,
) -> int:
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.results import Ended, Planned, choose
    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.errors import UsageError

    choose(output, Planned, Ended)
    if not (yes or dry_run or sys.stdin.isatty()):
        raise UsageError(
            "there is no terminal to ask on",
            evidence="undo shows its plan and asks before the first change",
            remedy="add --yes to go on without the question, or look first with --dry-run",
        )
    from gpunode.fleet.undo_one import Asked, host_work

    asked = Asked(run, packages, allow_container_loss)

    with open_hosts(hosts, as_root=True) as named:
        prepared = Preparation.of(fleet, named)
        return _run(named, hosts, output, host_work(asked), _planner(asked), prepared, ask=not yes, only=dry_run)


Planner = Callable[["Host"], "HostOutcome"]


def _run(
    named: tuple[Host, ...],
    hosts: LiveOptions,
    output: OutputOptions,
    host_work: HostWork,
    planner: Planner,
    prepared: Preparation,
    *,
    ask: bool,
    only: bool,
) -> int:
    from gpunode.cli.hosts import look_at
    from gpunode.cli.results import Ended, Planned, each_line, finish, finish_declined, over_ssh, say_problems
    from gpunode.cli.run.apply_plans import apply_plans
    from gpunode.cli.run.kept_run import Order, keep_unplanned
    from gpunode.cli.verbs.setup import agreed, show_plans, show_rollout
    from gpunode.fleet.run import declined

    report = look_at(named, hosts, output, planner)
    changes = [h for h in report.hosts if h.plan and not h.plan.empty]
    if named and not only and not any(h.plan for h in report.hosts):
        report = keep_unplanned(Order("undo"), named, report, hosts)
        only = True
    if only or not named:
        return finish(Planned("undo", report, over_ssh(named)), output)
    show_plans(report, output)
    rollout = prepared.rollout(named, report)
    show_rollout(prepared.words(report), output)
    if ask and changes:
        say_problems(report, ssh=over_ssh(named))  # before the question; else the result alone has them
    if ask and changes and not agreed(changes):
        untouched = declined(report, {h.target for h in changes})
        return finish_declined(Planned("undo", untouched, over_ssh(named)), output)
    done = apply_plans(named, report, hosts, output, order=Order("undo"), host_work=host_work, rollout=rollout)
    return finish(
        Ended("undo", done, over_ssh(named)),
        output,
        errors_shown=len(named) > 1,
        printed=each_line("undo", output) is not None,
    )


def _planner(asked: Asked) -> Planner:
    """One host's plan, from facts that no package transaction of a killed gpunode moves any more."""
    from gpunode.fleet.runs.shared import SharedParts

    share = SharedParts()  # the plans are held until all are agreed to

    def planned(host: Host) -> HostOutcome:
        from gpunode.cli.errors import say
        from gpunode.errors import ExitCode
        from gpunode.facts.collect import collect
        from gpunode.fleet.apply_one import wait_for_killed
        from gpunode.fleet.undo_one import undo_goes_on, undo_planner
        from gpunode.model.report import HostOutcome

        with undo_goes_on():
            wait_for_killed(host, say)
            plan = undo_planner(host.transport, asked)(collect(host.transport))
        return HostOutcome(str(host), ExitCode.DONE, plan=share.plan(plan))

    return planned
