"""check over several hosts: what only shows when all have ended (fleet.version-uniform)."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from gpunode.checks.causes import folded
from gpunode.checks.fixes import with_fixes
from gpunode.checks.fleet import VERSIONS
from gpunode.checks.registry import ended
from gpunode.checks.rules.judged import Judgement, ruled
from gpunode.checks.uniform import Compared, compared
from gpunode.model.alike import Alike
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts
from gpunode.model.report import CheckReport, CheckResult, FleetReport, HostOutcome, wanting
from gpunode.values import dataclass

if TYPE_CHECKING:
    from datetime import date

    from gpunode.catalog.load import Catalog
    from gpunode.render.matrix.sight import Eye, Sight


@dataclass
class Kept:
    """What is held of each host that has ended, until all have: not its facts. Filled by the hosts' threads."""

    page: bool = False  # the fleet's page is made of it
    sights: dict[str, Sight] = field(default_factory=dict)  # target -> what the page says of its facts
    compared: dict[str, Compared] = field(default_factory=dict)  # target -> what is held against the others
    alike: Alike = field(default_factory=Alike)

    def outcome(self, outcome: HostOutcome) -> HostOutcome:
        """The same without facts."""
        check = outcome.check
        if check is None:
            return outcome
        if check.facts is not None:
            mine = Compared.of(check.facts)
            versions = dict(self.alike.shared(tuple(mine.versions.items())))
            self.compared[outcome.target] = mine._replace(versions=versions)
            if self.page:
                self.sights[outcome.target] = self.alike.shared(self._eye.sight(check.facts))
        return replace(outcome, check=self.alike.report(check))

    @cached_property
    def _eye(self) -> Eye:
        from gpunode.render.matrix.sight import Eye

        return Eye()


def with_peers(
    report: FleetReport,
    kept: Kept,
    rules: Judgement,
    catalog: Catalog,
    today: date,
    *,
    strict: bool,
    again: tuple[str, ...],
) -> FleetReport:
    """The hosts' reports with the verdict of how they compare. A host without a report is not compared."""
    from gpunode.cli.verbs.check_host import check_code

    found = {place: kept.compared[one.target] for place, one in enumerate(report.hosts) if one.target in kept.compared}
    if len(found) < 2:
        return report
    verdicts = dict(zip(found, compared(tuple(found.values())), strict=True))
    hosts = list(report.hosts)
    for place, verdict in verdicts.items():
        check = hosts[place].check
        if check is None:
            continue
        result = ended(VERSIONS, check.results[VERSIONS].severity, verdict)
        check = kept.alike.report(_joined(check, _judged(result, check, rules, catalog, today, again)))
        hosts[place] = replace(hosts[place], check=check, code=check_code(check, strict))
    return replace(report, hosts=tuple(hosts))


def _judged(
    result: CheckResult, host: CheckReport, rules: Judgement, catalog: Catalog, today: date, again: tuple[str, ...]
) -> CheckReport:
    """A report of this one check, with all that happens to those of one host. No other finding explains it."""
    about = tuple(one for one in rules.rules.acknowledge if one.id == VERSIONS)
    profile = host.profile.name if host.profile else rules.rules.profile
    mine = replace(rules, rules=replace(rules.rules, acknowledge=about, profile=profile))
    alone = CheckReport(host.target, {VERSIONS: result}, _NO_FACTS)
    return wanting(with_fixes(folded(ruled(alone, mine, catalog, today)), _no_plan), again)


# The finding is about no entity, no other explains it, and the profile is chosen: facts of its host change no more.
_NO_FACTS = HostFacts("", "", OsFacts("", ""), KernelFacts(""), root=True)


def _no_plan(options: tuple[str, ...]) -> NoReturn:
    raise AssertionError(f"{VERSIONS} has no row of MENDED, so nobody asks for a plan of {options}")


def _joined(check: CheckReport, one: CheckReport) -> CheckReport:
    """Acknowledgements that matched nothing before may match now."""
    kept = tuple(text for text in check.idle if not text.startswith(VERSIONS))
    results = dict(zip(check.results, check.results.values(), strict=True))
    return replace(check, results={**results, **one.results}, idle=kept + one.idle)
