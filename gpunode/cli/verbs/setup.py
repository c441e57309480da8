"""gpunode setup: detect, plan, ask, apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.again import AgainOptions
from gpunode.cli.options.groups import HostOptions, OutputOptions, option, typed
from gpunode.cli.options.rollout import RolloutOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.cli.results import Ended
    from gpunode.cli.run.kept_run import Order
    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.fleet.host import Host
    from gpunode.fleet.runs.shared import SharedParts
    from gpunode.model.bundle import Bundle
    from gpunode.model.plan import Plan
    from gpunode.model.report import FleetReport, HostOutcome
    from gpunode.model.run_record import PastRun
    from gpunode.model.spec import Spec
    from gpunode.remedy import Command
    from gpunode.render.style import Style
    from gpunode.specfile import SpecFile


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
    earlier: AgainOptions,
    fleet: RolloutOptions,
    output: OutputOptions,
    yes: Annotated[bool, option("--yes", "-y", help="Do not ask.")] = False,
    plan: Annotated[
        Path | None,
        option(
            "--plan",
            metavar="FILE",
            help="Apply this saved plan, if today's facts still lead to the same.",
        ),
    ] = None,
) -> int:
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.options.spec import bundle_of, wanted_of_each, wanted_spec
    from gpunode.cli.results import Ended, Planned, choose
    from gpunode.cli.run.apply_plans import refuse_unasked
    from gpunode.cli.verbs.lock import say_left
    from gpunode.cli.verbs.saved_plan import saved_plan
    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.errors import UsageError
    from gpunode.model.rules import Rules
    from gpunode.specfile import SpecFile

    choose(output, Planned, Ended)
    if earlier != AgainOptions():
        if plan or wanted.bundle:
            flag = "--plan" if plan else "--bundle"
            raise UsageError(f"{flag} is of no earlier run", remedy="leave it out")
        return _again(earlier, hosts, wanted, fleet, output, yes=yes)
    if plan and wanted.bundle:
        raise UsageError("--plan and --bundle exclude each other", remedy="leave one of them out")
    saved = saved_plan(plan, wanted) if plan else None
    if not saved:
        wanted_spec(wanted)  # what is wrong with it is said before anything of hosts
    if not (saved or hosts.recorded):
        refuse_unasked(yes, "setup", "or look first with ", "plan")
    say_left(wanted, quiet=output.quiet)
    with open_hosts(hosts, as_root=True) as named:
        if saved and len(named) != 1:
            raise UsageError("--plan is for one host", remedy="name the host the plan was made for")
        file_of = (lambda host: SpecFile(saved.spec, Rules())) if saved else wanted_of_each(named, wanted)
        prepared = Preparation.of(fleet, named, file_of)
        order = _order(named, file_of, wanted, fleet, prepared)
        return _run(
            named, file_of, saved, hosts, output, prepared, order, ask=not (yes or saved), bundle=bundle_of(wanted)
        )


def _again(
    earlier: AgainOptions,
    hosts: HostOptions,
    wanted: SpecOptions,
    fleet: RolloutOptions,
    output: OutputOptions,
    *,
    yes: bool,
) -> int:
    """The hosts of an earlier run once more."""
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.results import Ended, show_no_host
    from gpunode.cli.run.apply_plans import refuse_unasked
    from gpunode.cli.verbs.setup_again import (
        attach,
        chosen,
        file_of_each,
        hosts_of,
        kept_spec,
        nothing_left,
        only_named,
        rollout_of,
    )
    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.errors import ExitCode, UsageError
    from gpunode.model.report import FleetReport

    again = chosen(earlier)
    assert again is not None
    as_typed, hosts, kept = hosts, hosts_of(again, hosts), kept_spec(again, wanted)
    if again.flag == "--attach":
        if yes:
            raise UsageError("--attach asks nothing, so --yes has nothing to answer", remedy="leave it out")
    else:
        refuse_unasked(yes, "setup", "or look at it first with ", "runs", "show", again.past.header.id)
    nothing = Ended("setup", FleetReport((), 0.0))
    if not again.names:
        say(nothing_left(again))
        show_no_host(nothing, output)
        return again.code
    with open_hosts(hosts, as_root=True) as named:
        mine = only_named(again, named, as_typed)
        if not mine:
            show_no_host(nothing, output)
            return int(ExitCode.DONE)
        file_of = file_of_each(again, kept, mine, wanted)
        if again.flag == "--attach":
            if ignored := typed(fleet):
                raise UsageError(
                    f"--attach begins nothing, so {ignored[0]} has nothing to order", remedy="leave it out"
                )
            return attach(again, mine, file_of, hosts, output)
        fleet = rollout_of(again, fleet, [file_of(host) for host in mine])
        prepared = Preparation.of(fleet, mine, file_of, again.past)
        order = _order(mine, file_of, wanted, fleet, prepared, again.goes_on)
        return _run(mine, file_of, None, hosts, output, prepared, order, ask=not yes)


def _order(
    named: Sequence[Host],
    file_of: Callable[[Host], SpecFile],
    wanted: SpecOptions,
    fleet: RolloutOptions,
    prepared: Preparation,
    past: PastRun | None = None,
) -> Order:
    from gpunode.cli.options.kept_rollout import typed_rollout
    from gpunode.cli.options.spec import own_specs
    from gpunode.cli.run.kept_run import Order
    from gpunode.model.rules import Rules
    from gpunode.model.spec import Spec
    from gpunode.specfile import SpecFile

    file = file_of(named[0]) if named else SpecFile(Spec(), Rules())
    rollout = tuple(typed_rollout(fleet, prepared.policy.window).items())
    own = own_specs(named, file_of, wanted)
    left, owing = prepared.left_closed, prepared.owing
    return Order("setup", file.spec if named else None, own, rollout, file.rules, past, left, owing)


def _run(
    named: tuple[Host, ...],
    file_of: Callable[[Host], SpecFile],
    saved: Plan | None,
    hosts: HostOptions,
    output: OutputOptions,
    prepared: Preparation,
    order: Order,
    *,
    ask: bool,
    bundle: Bundle | None = None,
) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import look_at
    from gpunode.cli.results import Ended, Planned, each_line, finish, finish_declined, over_ssh, say_problems
    from gpunode.cli.run.apply_plans import apply_plans
    from gpunode.cli.run.kept_run import keep_unplanned
    from gpunode.fleet.apply_one import set_up_from
    from gpunode.fleet.run import declined
    from gpunode.fleet.runs.shared import SharedParts
    from gpunode.render.failed_hosts import failed_lines

    share = SharedParts()
    report = look_at(
        named, hosts, output, lambda host: _planned(host, file_of(host).spec, saved, share, prepared, bundle)
    )
    changes = [h for h in report.hosts if h.plan and (h.plan.steps or h.plan.reboot)]
    recorded = any(host.recorded for host in named)
    if recorded or not named:
        return finish(Planned("setup", report, over_ssh(named), recorded), output)
    if not any(h.plan for h in report.hosts):
        report = keep_unplanned(order, named, report, hosts)
        code = finish(Planned("setup", report, over_ssh(named)), output)
        for line in failed_lines(report.hosts, ssh=over_ssh(named), retry=retry_of(report.run)) if report.run else ():
            say(line)
        return code
    show_plans(report, output)
    rollout = prepared.rollout(named, report)
    show_rollout(prepared.words(report, rollout.gate.stopped), output)
    ask = ask and not rollout.gate.stopped
    if ask and changes:
        say_problems(report, ssh=over_ssh(named))  # before the question; else the result alone has them
    if ask and changes and not agreed(changes):
        untouched = declined(report, {h.target for h in changes})
        return finish_declined(Planned("setup", untouched, over_ssh(named)), output)
    work = set_up_from(bundle) if bundle else None
    done = apply_plans(named, report, hosts, output, order=order, host_work=work, rollout=rollout)
    return finish(
        Ended("setup", done, over_ssh(named)),
        output,
        errors_shown=len(done.hosts) > 1,
        printed=each_line("setup", output) is not None,
    )


def _planned(
    host: Host,
    spec: Spec,
    saved: Plan | None,
    share: SharedParts,
    prepared: Preparation,
    bundle: Bundle | None,
) -> HostOutcome:
    """The plan, from facts that no package transaction of a killed gpunode changes any more. Raises Drift where a saved
    one differs: what is shown and run is the fresh one, never what stands in the file.
    """
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.plan import planned
    from gpunode.cli.verbs.saved_plan import hold_against
    from gpunode.fleet.apply_one import facts_of

    outcome = planned(host, spec, None if host.recorded else facts_of(host, say), prepared.seen, bundle)
    if saved and outcome.plan:
        hold_against(saved, outcome.plan)
    return replace(outcome, plan=outcome.plan and share.plan(outcome.plan))


def show_plans(report: FleetReport, output: OutputOptions) -> None:
    from gpunode.cli.output import show_beforehand
    from gpunode.cli.verbs.plan import plans_of

    show_beforehand(lambda style: plans_of(report, style), output)


def show_rollout(words: str, output: OutputOptions) -> None:
    """Below the plans: in which order hosts come, and what stops it; nothing for ""."""
    from gpunode.cli.output import show_beforehand
    from gpunode.render.style import hang

    show_beforehand(lambda style: "\n".join(hang(style, "Rollout    ", words)) if words else "", output)


def agreed(changes: list[HostOutcome]) -> bool:
    from gpunode.cli.run.apply_plans import confirmed
    from gpunode.render.wording import count

    steps = sum(len(h.plan.steps) for h in changes if h.plan)
    where = f" on {count(len(changes), 'host')}" if len(changes) > 1 else ""
    return confirmed(f"Apply {count(steps, 'step')}{where}")


def page(result: Ended, style: Style) -> str:
    from gpunode.render.run_text import fleet_run_text, run_text

    report = result.report
    if len(report.hosts) == 1:
        run = report.hosts[0].run
        return run_text(run, style, seconds_s=report.seconds, ssh=result.ssh) if run else ""
    retry = retry_of(report.run) if result.verb == "setup" and report.run else None
    return fleet_run_text(report.hosts, style, seconds_s=report.seconds, ssh=result.ssh, retry=retry)


def retry_of(run_id: str) -> Command:
    """The command that tries again what did not end well."""
    from gpunode.remedy import gpunode

    return gpunode("setup", "--retry-failed", run_id, ssh=False)
