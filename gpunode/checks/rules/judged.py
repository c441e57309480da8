"""A report as a site wants it: what is left out, how severe the rest is, and what was accepted.

An error that becomes a warning or is left out says who wanted that, and what it was.
"""

from __future__ import annotations

from dataclasses import field, replace
from datetime import date
from functools import cached_property

from gpunode.catalog.load import Catalog
from gpunode.catalog.profiles import Profile
from gpunode.checks.rules.accepted import accepted
from gpunode.checks.rules.patterns import first_match, matches
from gpunode.checks.rules.profile import chosen_profile
from gpunode.model.report import CheckReport, CheckResult, Finding, NotApplicable, Severity, Weighed
from gpunode.model.rules import Rules
from gpunode.values import dataclass

# What compares a host with what is expected of it: all that --against asks for.
TOLD = ("--skip", "profile")  # what they leave out says what it found: it was one check of many that nobody looks at
EXPECTATIONS = ("expect.*", "pci.expected-count")


@dataclass(frozen=True)
class Judgement:
    """The rules of a spec, and what was typed for this run."""

    rules: Rules = field(default_factory=Rules)
    only: tuple[str, ...] = ()  # ids or patterns; (): all
    skip: tuple[str, ...] = ()
    profile_by: str = "the spec"  # who named the profile, where it is not "auto"
    drift: bool = False  # only what is expected: no profile, no opinion

    def wants(self, id: str) -> bool:
        """Whether a verdict of this check was not left out by what was typed."""
        return not _typed_out(id, self)

    @cached_property
    def ruled_ids(self) -> dict[tuple[str, tuple[str, ...]], tuple[tuple[str, str | None], ...]]:
        """By profile and checks: the hosts of a run have few kinds of the one, and the same of the other."""
        return {}


def ruled(report: CheckReport, judgement: Judgement, catalog: Catalog, today: date) -> CheckReport:
    """`report` with the rules applied; causes are told afterwards (causes.py), among what is left."""
    if report.facts is None:
        return report
    rules = judgement.rules
    profile, chosen = chosen_profile(rules.profile, judgement.profile_by, report.facts, catalog)
    results = dict(report.results)
    for id, own in _ruled_ids(judgement, profile, tuple(results)):
        if own is None:
            results[id] = _weighed(results[id], judgement, profile)
        else:
            results[id] = _without(results[id], own, told=own.startswith(TOLD))
    kept = replace(report, results=results, profile=None if judgement.drift else chosen)
    return accepted(kept, rules.acknowledge, today)


def _ruled_ids(judgement: Judgement, profile: Profile, ids: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    """The checks about which the rules or the profile say something: why they do not want it; None: how it weighs."""
    if (known := judgement.ruled_ids.get((profile.name, ids))) is not None:
        return known
    named = {id for id, _ in judgement.rules.severity}
    patterns = () if judgement.drift else tuple(one.check for one in profile.weigh)
    found: list[tuple[str, str | None]] = []
    for id in ids:
        if why := _left_out(id, judgement, profile, named):
            found.append((id, why))
        elif id in named or first_match(id, patterns):
            found.append((id, None))
    return judgement.ruled_ids.setdefault((profile.name, ids), tuple(found))


def _typed_out(id: str, judgement: Judgement) -> str:
    """Which option does not want this check; "" for none."""
    if judgement.drift and not first_match(id, EXPECTATIONS):
        return "--against asks for differences only"
    if judgement.only and not first_match(id, judgement.only):
        return f"--only {','.join(judgement.only)}"
    if pattern := first_match(id, judgement.skip):
        return f"--skip {pattern}"
    return ""


def _left_out(id: str, judgement: Judgement, profile: Profile, named: set[str]) -> str:
    """Why this check is not wanted; "" where it is."""
    if why := _typed_out(id, judgement):
        return why
    # Whoever asks for a check by name wants its verdict, whatever the profile says.
    if judgement.only or judgement.drift or id in named:
        return ""
    reason = next((one.reason for one in profile.skip if matches(id, one.check)), None)
    return f"profile {profile.name}: {reason}" if reason else ""


def _without(result: CheckResult, why: str, *, told: bool) -> CheckResult:
    """Left out. `told`: what it found is in the reason, since a finding is not to disappear without a trace."""
    match result.outcome:
        case NotApplicable() if told:
            return result  # it has no verdict anyway, and its own reason
        case Finding() as finding if told:
            said = f"{why}; it found ({result.found.value}): {finding.summary}"
            return replace(result, outcome=NotApplicable(said, left_out=True))
    return replace(result, outcome=NotApplicable(why, left_out=True))


def _weighed(result: CheckResult, judgement: Judgement, profile: Profile) -> CheckResult:
    """The spec's word before the profile's."""
    by_spec = dict(judgement.rules.severity).get(result.id)
    if by_spec is not None:
        return _with_severity(result, Severity(by_spec), Weighed(result.found, "the spec"))
    ours = next((one for one in profile.weigh if matches(result.id, one.check)), None)
    if ours is None or judgement.drift:
        return result
    return _with_severity(
        result, Severity(ours.severity), Weighed(result.found, f"profile {profile.name}", ours.reason)
    )


def _with_severity(result: CheckResult, severity: Severity, weighed: Weighed) -> CheckResult:
    finding = result.outcome
    if not isinstance(finding, Finding):
        return replace(result, severity=severity)
    if weighed.before is severity:
        return result
    return replace(result, severity=severity, outcome=replace(finding, severity=severity, weighed=weighed))
