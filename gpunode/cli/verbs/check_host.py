"""One host checked: facts, the checks and what setup would do about them, for every verb that asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpunode.catalog.load import Catalog
    from gpunode.checks.rules.judged import Judgement
    from gpunode.errors import ExitCode
    from gpunode.fleet.host import Host
    from gpunode.model.facts import HostFacts
    from gpunode.model.plan import Plan
    from gpunode.model.report import CheckReport, HostOutcome
    from gpunode.model.spec import Spec
    from gpunode.site_checks.directory import SiteCheck

    Observe = Callable[[Host, HostFacts, Spec], HostFacts]


def site_checks(spec: Spec) -> tuple[SiteCheck, ...]:
    """The site's own checks, where the spec names their directory. Raises UsageError for all that is wrong there."""
    if spec.site_checks is None:
        return ()
    from gpunode.render.json_schema import json_schema
    from gpunode.site_checks.directory import load_site_checks

    return load_site_checks(Path(spec.site_checks), json_schema())


def checked(
    host: Host,
    spec: Spec,
    strict: bool,
    again: tuple[str, ...] = (),
    site: tuple[SiteCheck, ...] = (),
    rules: Judgement | None = None,
    more: Observe | None = None,
) -> HostOutcome:
    """One host's checks; `again`: the options that made `spec`, which its remedies must have too.

    `more`: what else is observed, knowing the facts.
    """
    from gpunode.cli.verbs.check_ready import made_ready
    from gpunode.facts.collect import collect

    if host.recorded:
        facts = collect(host.transport)
    else:
        ready = made_ready()
        facts = collect(host.transport, answered=ready.hurry if host.local else lambda: None)
        ready.join()  # two threads that load the same at once take longer than one
    return judged(host, more(host, facts, spec) if more else facts, spec, strict, again, site, rules)


def judged(
    host: Host,
    facts: HostFacts,
    spec: Spec,
    strict: bool,
    again: tuple[str, ...],
    site: tuple[SiteCheck, ...],
    rules: Judgement | None = None,
) -> HostOutcome:
    """The checks of facts that are there already."""
    from dataclasses import replace
    from datetime import date

    from gpunode.catalog.load import load_catalog
    from gpunode.checks import run_all
    from gpunode.checks.agreement import agreed
    from gpunode.checks.causes import folded
    from gpunode.checks.fixes import with_fixes
    from gpunode.checks.rules.judged import Judgement, ruled
    from gpunode.model.report import HostOutcome, wanting

    rules, catalog, today = rules or Judgement(), load_catalog(), date.today()
    plan = cache(lambda options: _plan(facts, spec, catalog, options))
    report = agreed(run_all(facts, spec, catalog, today, rules.rules.profile), plan)
    if site := tuple(one for one in site if rules.wants(one.id)):  # no program runs whose verdict nobody wants
        report = _with_site(report, site, host, facts)
    report = with_fixes(folded(ruled(report, rules, catalog, today)), plan)
    report = replace(wanting(report, again), local=host.local)
    return HostOutcome(str(host), check_code(report, strict), check=report)


def _with_site(report: CheckReport, site: tuple[SiteCheck, ...], host: Host, facts: HostFacts) -> CheckReport:
    from gpunode.errors import ExitCode
    from gpunode.model.report import HostOutcome
    from gpunode.render.encode import to_data
    from gpunode.render.machine import host_line
    from gpunode.site_checks.judge import with_site_checks

    line = host_line("detect", HostOutcome(str(host), ExitCode.DONE, facts=facts)) if host.local else None
    return with_site_checks(report, site, to_data(facts), stdin=line.encode() if line else None)


def _plan(facts: HostFacts, spec: Spec, catalog: Catalog, options: tuple[str, ...]) -> Plan:
    """What setup would do about this host with these options; the planner is loaded only where something is wrong."""
    from gpunode.cli.options.spec import texts_of_words
    from gpunode.planner.plan import make_plan
    from gpunode.specfile import put_all

    return make_plan(facts, put_all(spec, texts_of_words(options)), catalog)


def check_code(report: CheckReport, strict: bool) -> ExitCode:
    """0 all pass, 1 a failure, 9 warnings only with --strict."""
    from gpunode.errors import ExitCode

    if report.failures:
        return ExitCode.FAILED
    return ExitCode.WARNINGS if strict and report.warnings else ExitCode.DONE
