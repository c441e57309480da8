"""gpunode plan: what setup would do, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import HostOptions, OutputOptions, option
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.cli.results import Explained, Planned
    from gpunode.fleet.host import Host
    from gpunode.model.bundle import Bundle
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import FleetReport, HostOutcome
    from gpunode.model.spec import Spec
    from gpunode.remedy import Command
    from gpunode.render.style import Style


def register(app: typer.Typer) -> None:
    verb(
        app,
        "plan",
        help="Show what setup would do and why. Changes nothing; -v adds reasons, commands and diffs.",
        examples=("gpunode plan --driver 580 -v", "gpunode plan --ssh gpu07 --save plan.json"),
    )(plan)


def plan(
    hosts: HostOptions,
    wanted: SpecOptions,
    output: OutputOptions,
    save: Annotated[
        Path | None,
        option("--save", metavar="FILE", help="Save the plan for `setup --plan`."),
    ] = None,
    explain: Annotated[
        bool, option("--explain", help="Only why this driver and no other, and when that expires.")
    ] = False,
) -> int:
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.options.spec import bundle_of, wanted_of_each, wanted_spec
    from gpunode.cli.output import to_file
    from gpunode.cli.results import Explained, Planned, choose, finish, over_ssh
    from gpunode.cli.verbs.lock import say_left
    from gpunode.errors import UsageError
    from gpunode.offline.output_file import check
    from gpunode.render.machine import plan_to_json

    kind = Explained if explain else Planned
    choose(output, kind)
    wanted_spec(wanted)  # what is wrong with it is said before anything of hosts
    say_left(wanted, quiet=output.quiet)
    with open_hosts(hosts) as named:
        if save and len(named) != 1:
            raise UsageError("--save takes one host", remedy="name one host with --ssh")
        if save and wanted.bundle:
            raise UsageError("--save and --bundle exclude each other", remedy="setup --bundle shows its plan and asks")
        if save:
            check(save, "--save")
        wanted_of, bundle = wanted_of_each(named, wanted), bundle_of(wanted)
        report = look_at(named, hosts, output, lambda host: planned(host, wanted_of(host).spec, bundle=bundle))
        result = kind("plan", report, over_ssh(named))
        if save and report.hosts[0].plan:
            to_file(save, plan_to_json(report.hosts[0].plan), "--save")
            if isinstance(result, Planned) and not hosts.recorded:
                from gpunode.cli.verbs.saved_plan import applied_by

                result = replace(result, apply=applied_by(save, wanted, wanted_of(named[0]).spec))
        return finish(result, output)


def planned(
    host: Host,
    spec: Spec,
    facts: HostFacts | None = None,
    seen: Callable[[Host, HostFacts], HostFacts] | None = None,
    bundle: Bundle | None = None,
) -> HostOutcome:
    """One host's plan from `facts`; None: from fresh ones. `seen`: is given them, and answers those that the plan is
    made of. `bundle`: what packages come from.
    """
    from gpunode.apply.resolver_preview import with_answers
    from gpunode.catalog.load import load_catalog
    from gpunode.facts.collect import collect
    from gpunode.model.report import HostOutcome
    from gpunode.planner.install.bundle import with_bundle
    from gpunode.planner.plan import make_plan

    facts = facts or collect(host.transport)
    facts = seen(host, facts) if seen else facts
    plan = with_bundle(make_plan(facts, spec, load_catalog()), facts, bundle)
    if not host.recorded:
        plan = with_answers(plan, host.transport)
    return HostOutcome(str(host), plan.code, plan=plan)


def page(result: Planned, style: Style) -> str:
    """The plans of all hosts that have one; equal plans once."""
    text = plans_of(result.report, style)
    if result.apply:
        text += "\n" + "\n".join(_applied_by(result.apply, result, style))
    return f"{text}\n\nThis host is a recording: setup only shows its plan." if result.recorded and text else text


def _applied_by(command: Command, result: Planned, style: Style) -> list[str]:
    from gpunode.remedy import Remedy, RepairAction
    from gpunode.render.remedy_text import remedy_text
    from gpunode.render.style import hang

    hosts = [host.target for host in result.report.hosts] if result.ssh else []
    return hang(style, "Apply      ", remedy_text(Remedy(RepairAction.NONE, command), hosts))


def plans_of(report: FleetReport, style: Style) -> str:
    from gpunode.render.plan_text import plans_text

    return plans_text([h.plan for h in report.hosts if h.plan], style)


def explanation(result: Explained, style: Style) -> str:
    from gpunode.render.plan_text import explanation_text

    return "\n\n".join(explanation_text(h.plan, style) for h in result.report.hosts if h.plan)
