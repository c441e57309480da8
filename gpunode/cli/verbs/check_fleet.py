"""check over several hosts: what only shows when all have ended (fleet.version-uniform)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from gpunode.checks.causes import folded
from gpunode.checks.fixes import with_fixes
from gpunode.checks.fleet import VERSIONS
from gpunode.checks.registry import ended
from gpunode.checks.rules.judged import Judgement, ruled
from gpunode.checks.uniform import compared
from gpunode.model.report import CheckReport, CheckResult, FleetReport, wanting

if TYPE_CHECKING:
    from datetime import date

    from gpunode.catalog.load import Catalog


def with_peers(
    report: FleetReport, rules: Judgement, catalog: Catalog, today: date, *, strict: bool, again: tuple[str, ...]
) -> FleetReport:
    """The hosts' reports with the verdict of how they compare. A host without a report is not compared."""
    from gpunode.cli.verbs.check_host import check_code

    facts = {place: one.check.facts for place, one in enumerate(report.hosts) if one.check and one.check.facts}
    if len(facts) < 2:
        return report
    verdicts = dict(zip(facts, compared(tuple(facts.values())), strict=True))
    hosts = list(report.hosts)
    for place, verdict in verdicts.items():
        check = hosts[place].check
        assert check is not None
        result = ended(VERSIONS, check.results[VERSIONS].severity, verdict)
        check = _joined(check, _judged(result, check, rules, catalog, today, again))
        hosts[place] = replace(hosts[place], check=check, code=check_code(check, strict))
    return replace(report, hosts=tuple(hosts))


def _judged(
    result: CheckResult, host: CheckReport, rules: Judgement, catalog: Catalog, today: date, again: tuple[str, ...]
) -> CheckReport:
    """A report of this one check, with all that happens to those of one host. No other finding explains it."""
    about = tuple(one for one in rules.rules.acknowledge if one.id == VERSIONS)
    mine = replace(rules, rules=replace(rules.rules, acknowledge=about))
    alone = CheckReport(host.target, {VERSIONS: result}, host.facts)
    return wanting(with_fixes(folded(ruled(alone, mine, catalog, today)), _no_plan), again)


def _no_plan(options: tuple[str, ...]) -> NoReturn:
    raise AssertionError(f"{VERSIONS} has no row of MENDED, so nobody asks for a plan of {options}")


def _joined(check: CheckReport, one: CheckReport) -> CheckReport:
    """Acknowledgements that matched nothing before may match now."""
    kept = tuple(text for text in check.idle if not text.startswith(VERSIONS))
    return replace(check, results={**check.results, **one.results}, idle=kept + one.idle)
