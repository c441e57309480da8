"""check --fix: what a check found and setup can mend safely, planned, asked, applied, and checked again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpunode.cli.errors import say
from gpunode.cli.hosts import look_at, open_hosts
from gpunode.cli.options.groups import CheckedHostOptions, CheckOptions, OutputOptions, RuleOptions
from gpunode.cli.options.rules import judgement, refuse_idle
from gpunode.cli.options.spec import retyped, texts_of_words, wanted_file, wanted_of_each
from gpunode.cli.output import progress_style
from gpunode.cli.results import Fixed, choose, finish, finish_declined, over_ssh, say_problems
from gpunode.cli.run.apply_plans import apply_plans, refuse_unasked
from gpunode.cli.run.kept_run import Order
from gpunode.cli.verbs.check_host import checked, site_checks
from gpunode.cli.verbs.setup import agreed
from gpunode.errors import UsageError, worst
from gpunode.fleet.fix_one import Part, fix_plan, harmless, host_work
from gpunode.fleet.run import declined
from gpunode.model.report import CheckReport, FleetReport, HostOutcome
from gpunode.model.spec import Spec
from gpunode.render.door import show
from gpunode.specfile import put_all

if TYPE_CHECKING:
    from gpunode.fleet.host import Host
    from gpunode.render.style import Style

Check = Callable[["Host"], HostOutcome]


def fix(
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    *,
    strict: bool,
    yes: bool,
) -> int:
    """What is left out or accepted is not mended either."""
    choose(output, Fixed)
    if which.against:
        raise UsageError("--fix and --against exclude each other", remedy="setup makes a node as a spec wants it")
    if not hosts.recorded:
        refuse_unasked(yes, "check --fix", "or look first with ", "check")
    file = wanted_file(wanted)
    site = site_checks(file.spec)
    rules = judgement(which, file.rules, [one.id for one in site])
    with open_hosts(hosts, as_root=True) as named:
        wanted_of = wanted_of_each(named, wanted)
        refuse_idle(rules, (wanted_of(host).spec.expect for host in named), [one.id for one in site])

        def spec_of(host: Host) -> Spec:
            return wanted_of(host).spec

        def check(host: Host) -> HostOutcome:
            return checked(host, spec_of(host), strict, retyped(wanted), site, rules)

        return _run(named, hosts, output, spec_of, check, ask=not yes)


def _run(
    named: tuple[Host, ...],
    hosts: CheckedHostOptions,
    output: OutputOptions,
    spec_of: Callable[[Host], Spec],
    check: Check,
    *,
    ask: bool,
) -> int:
    ssh = over_ssh(named)
    report = look_at(named, hosts, output, lambda host: _planned(host, spec_of(host), check))
    changes = [h for h in report.hosts if h.plan]
    recorded = any(host.recorded for host in named)
    if recorded or not changes:
        return finish(Fixed("fix", report, ssh, recorded), output, errors_shown=True)
    _show(report, output, ssh=ssh)
    if ask:
        say_problems(report, ssh=ssh)
        if not agreed(changes):
            untouched = declined(report, {h.target for h in changes})
            return finish_declined(Fixed("fix", untouched, ssh), output)
    planned = zip(named, report.hosts, strict=True)
    parts = {h.target: _parts(h.check, spec_of(host)) for host, h in planned if h.plan and h.check}
    done = apply_plans(named, report, hosts, output, order=Order("fix"), host_work=host_work(parts))
    ended = dict(zip(named, done.hosts, strict=True))
    before = dict(zip(named, report.hosts, strict=True))
    after = look_at(
        named, hosts, output, lambda host: _checked_again(host, before[host], ended[host], check), again=True
    )
    hosts_after = tuple(_with_run(ended[host], one) for host, one in zip(named, after.hosts, strict=True))
    return finish(
        Fixed("fix", FleetReport(hosts_after, report.seconds + done.seconds + after.seconds), ssh),
        output,
        errors_shown=True,
    )


def _planned(host: Host, spec: Spec, check: Check) -> HostOutcome:
    """The check, and the plan of what is safe; without one where nothing is."""
    from dataclasses import replace

    from gpunode.catalog.load import load_catalog
    from gpunode.fleet.apply_one import wait_for_killed

    if not host.recorded:
        wait_for_killed(host, say)
    outcome = check(host)
    assert outcome.check is not None
    assert outcome.check.facts is not None
    parts = _parts(outcome.check, spec)
    plan = fix_plan(outcome.check.facts, parts, load_catalog()) if parts else None
    return replace(outcome, plan=plan if plan and plan.steps else None)


def _parts(report: CheckReport, spec: Spec) -> Sequence[Part]:
    """The setups that mend safe findings, in the order in which setup works."""
    wanted: dict[tuple[str, ...], set[str]] = {}
    for finding in report.findings.values():
        if finding.fix is not None and finding.fix.safe:
            wanted.setdefault(finding.fix.setup, set()).update(finding.fix.steps)
    specs = {options: put_all(harmless(spec), texts_of_words(options)) for options in wanted}
    ordered = sorted(wanted, key=lambda options: (_rank(specs[options]), len(options)))
    return tuple(Part(specs[options], frozenset(wanted[options])) for options in ordered)


def _rank(spec: Spec) -> int:
    from gpunode.model.spec import PARTS

    return PARTS.index(spec.only[0])


def _checked_again(host: Host, before: HostOutcome, ended: HostOutcome, check: Check) -> HostOutcome:
    """How the host is after it: the worst of how the run ended and of what the check says now."""
    from dataclasses import replace

    if before.plan is None or ended.run is None:
        return ended
    after = check(host)
    code = worst((ended.code, after.code))
    return replace(ended, code=code, check=after.check, before=before.check)


def _with_run(ended: HostOutcome, after: HostOutcome) -> HostOutcome:
    """`after`; where the second check came to nothing, how the run ended stays, with why."""
    from dataclasses import replace

    if ended.run is None or after.run is not None:
        return after
    return replace(
        ended,
        code=worst((ended.code, after.code)),
        problem=ended.problem or f"after its fix the host cannot be checked: {after.problem}",
        evidence=ended.evidence or after.evidence,
        remedy=ended.remedy if ended.problem else after.remedy,
    )


def _show(report: FleetReport, output: OutputOptions, *, ssh: bool) -> None:
    """On stderr, before the question: what would be done, and what is left to a person."""
    from gpunode.render.fix_text import before_text

    style = progress_style(output)
    if not output.quiet:
        show(before_text(report.hosts, style, ssh=ssh), sys.stderr, end="\n\n", painted=style.colour)


def page(result: Fixed, style: Style) -> str:
    from gpunode.render.fix_text import after_text, before_text

    report = result.report
    if result.recorded or not any(h.before for h in report.hosts):
        text = before_text(report.hosts, style, ssh=result.ssh)
        return f"{text}\n\nThis host is a recording: its plan is only shown." if result.recorded else text
    return after_text(report.hosts, style, seconds_s=report.seconds, ssh=result.ssh)
