"""gpunode setup: detect, plan, ask, apply."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options.groups import HostOptions, OutputOptions, verb
from gpunode.cli.options.setup import SpecOptions

if TYPE_CHECKING:
    from gpunode.cli.results import Ended
    from gpunode.fleet.host import Host
    from gpunode.model.plan import Plan
    from gpunode.model.report import FleetReport, HostOutcome
    from gpunode.model.spec import Spec
    from gpunode.render.style import Style


def register(app: typer.Typer) -> None:
    verb(
        app,
        "setup",
        help="Set a host up: driver, toolkit, runtimes. Shows the plan and asks before the first change.",
        examples=("gpunode setup --driver 580 --reboot if-needed", "gpunode setup --ssh gpu[01-12] --yes"),
    )(setup)


def setup(
    hosts: HostOptions,
    wanted: SpecOptions,
    output: OutputOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", show_default=False)] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Apply this saved plan, if today's facts still lead to the same.",
            show_default=False,
        ),
    ] = None,
) -> int:
    from gpunode.cli.apply_plans import refuse_unasked
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.options.spec import wanted_of_each, wanted_spec
    from gpunode.cli.results import Ended, Planned, choose
    from gpunode.cli.saved_plan import saved_plan
    from gpunode.errors import UsageError

    choose(output, Planned, Ended)
    saved = saved_plan(plan, wanted) if plan else None
    if not saved:
        wanted_spec(wanted)  # what is wrong with it is said before anything of hosts
    if not (saved or hosts.recorded):
        refuse_unasked(yes, "setup", "or look first with ", "plan")
    with open_hosts(hosts, as_root=True) as named:
        if saved and len(named) != 1:
            raise UsageError("--plan is for one host", remedy="name the host the plan was made for")
        each = wanted_of_each(named, wanted)
        spec_of = (lambda host: saved.spec) if saved else (lambda host: each(host).spec)
        return _run(named, spec_of, saved, hosts, output, ask=not (yes or saved))


def _run(
    named: tuple[Host, ...],
    spec_of: Callable[[Host], Spec],
    saved: Plan | None,
    hosts: HostOptions,
    output: OutputOptions,
    *,
    ask: bool,
) -> int:
    from gpunode.cli.apply_plans import apply_plans
    from gpunode.cli.errors import say
    from gpunode.cli.results import Ended, Planned, finish, look_at, over_ssh, say_problems
    from gpunode.errors import ExitCode

    report = look_at(named, hosts, output, lambda host: _planned(host, spec_of(host), saved))
    changes = [h for h in report.hosts if h.plan and (h.plan.steps or h.plan.reboot)]
    recorded = any(host.recorded for host in named)
    if recorded or not any(h.plan for h in report.hosts):
        return finish(Planned("setup", report, over_ssh(named), recorded), output)
    show_plans(report, output)
    if ask and changes:
        say_problems(report, ssh=over_ssh(named))  # before the question; else the result alone has them
    if ask and changes and not agreed(changes):
        say("gpunode: nothing was changed")
        return int(ExitCode.FAILED)
    done = apply_plans(named, report, hosts, output)
    return finish(Ended("setup", done, over_ssh(named)), output, errors_shown=len(named) > 1)


def _planned(host: Host, spec: Spec, saved: Plan | None) -> HostOutcome:
    """The plan, from facts that no package transaction of a killed gpunode changes any more. Raises Drift where a saved
    one differs: what is shown and run is the fresh one, never what stands in the file.
    """
    from gpunode.cli.errors import say
    from gpunode.cli.saved_plan import hold_against
    from gpunode.cli.verbs.plan import planned
    from gpunode.fleet.apply_one import wait_for_killed

    if not host.recorded:
        wait_for_killed(host, say)
    outcome = planned(host, spec)
    if saved and outcome.plan:
        hold_against(saved, outcome.plan)
    return outcome


def show_plans(report: FleetReport, output: OutputOptions) -> None:
    """On stderr: stdout is for the result, and the question follows on the terminal."""
    from gpunode.cli.output import progress_style
    from gpunode.cli.verbs.plan import plans_of
    from gpunode.render.door import show

    style = progress_style(output)
    if not output.quiet:
        show(plans_of(report, style), sys.stderr, end="\n\n", painted=style.colour)


def agreed(changes: list[HostOutcome]) -> bool:
    from gpunode.cli.errors import say
    from gpunode.render.wording import count

    steps = sum(len(h.plan.steps) for h in changes if h.plan)
    where = f" on {count(len(changes), 'host')}" if len(changes) > 1 else ""
    say(f"Apply {count(steps, 'step')}{where}? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def page(result: Ended, style: Style) -> str:
    from gpunode.render.run_text import fleet_run_text, run_text

    report = result.report
    if len(report.hosts) == 1:
        run = report.hosts[0].run
        return run_text(run, style, seconds_s=report.seconds, ssh=result.ssh) if run else ""
    return fleet_run_text(report.hosts, style, seconds_s=report.seconds, ssh=result.ssh)
