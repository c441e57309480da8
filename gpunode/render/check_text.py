"""Check reports as a person reads them: worst first, one finding a block, then one line that counts."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import count, seconds, without_name

DETAIL = 14  # columns before evidence and remedy
WORDS = {Severity.ERROR: ("FAIL", "bad"), Severity.WARNING: ("WARN", "warn")}


def check_text(report: CheckReport, style: Style = PLAIN, *, seconds_s: float | None = None) -> str:
    """One host's report, no newline at the end."""
    lines = _findings([report], style)
    if style.verbose > 0:
        lines += _others(report, style)
    lines += hang(style, "", _host_count(report, seconds_s))
    return "\n".join(lines)


def fleet_check_text(outcomes: Sequence[HostOutcome], style: Style = PLAIN, *, seconds_s: float = 0.0) -> str:
    """A fleet's reports; hosts that gave none come first, with the reason."""
    lines = []
    for outcome in (o for o in outcomes if o.check is None):
        lead = f"{paint(style, 'bad', 'FAIL')}  {outcome.target}   "
        lines += hang(style, lead, without_name(outcome.target, outcome.problem), lead_width=9 + len(outcome.target))
        lines += detail("evidence", outcome.evidence, style) + detail("remedy", outcome.remedy, style)
    reports = [o.check for o in outcomes if o.check is not None]
    lines += _findings(reports, style)
    if style.verbose > 0:
        for report in reports:
            lines += _others(report, style)
    lines += hang(style, "", _fleet_count(reports, len(outcomes) - len(reports), seconds_s))
    return "\n".join(lines)


def detail(label: str, text: str, style: Style) -> list[str]:
    """`evidence  ...` under a finding; nothing for an empty text."""
    return hang(style, " " * DETAIL + f"{label:<10}", text) if text else []


def _findings(reports: Sequence[CheckReport], style: Style) -> list[str]:
    if style.verbose < 0:
        return []
    failures = [(r.target, f, Severity.ERROR) for r in reports for f in r.failures]
    found = failures + [(r.target, w, Severity.WARNING) for r in reports for w in r.warnings]
    hosts = max((len(t) for t, _, _ in found), default=0)
    ids = max((len(r.id) for _, r, _ in found), default=0)
    lines = []
    for target, result, severity in found:
        lines += _finding(target, result, severity, (hosts, ids), style)
    return lines


def _finding(target: str, result: CheckResult, severity: Severity, columns: tuple[int, int], style: Style) -> list[str]:
    assert isinstance(result.outcome, Finding)
    word, meaning = WORDS[severity]
    left = f"  {target:<{columns[0]}}   {result.id:<{columns[1]}}   "
    width = len(word) + len(left)
    if style.width - width < 40:  # the sentence would be a ribbon: it goes below, where evidence and remedy stand
        lines = [paint(style, meaning, word) + left.rstrip(), *hang(style, " " * DETAIL, result.outcome.summary)]
    else:
        lines = hang(style, paint(style, meaning, word) + left, result.outcome.summary, lead_width=width)
    return [
        *lines,
        *detail("evidence", result.outcome.evidence, style),
        *detail("remedy", result.outcome.remedy, style),
    ]


def _others(report: CheckReport, style: Style) -> list[str]:
    ids = max((len(i) for i in report.results), default=0)
    lines = []
    for result in report.results.values():
        if result.outcome is None:
            lines.append(f"{paint(style, 'good', 'pass')}  {result.id}")
        elif isinstance(result.outcome, NotApplicable):
            lead = f"{paint(style, 'dim', 'n/a ')}  {result.id:<{ids}}   "
            lines += hang(style, lead, result.outcome.reason, lead_width=9 + ids)
    return lines


def _host_count(report: CheckReport, seconds_s: float | None) -> str:
    parts = [f"{count(report.passed, 'check')} {'passes' if report.passed == 1 else 'pass'}"]
    if report.failures:
        parts.append(f"{len(report.failures)} {'fails' if len(report.failures) == 1 else 'fail'}")
    if report.warnings:
        parts.append(count(len(report.warnings), "warning"))
    skipped = len(report.results) - report.passed - len(report.failures) - len(report.warnings)
    if skipped:
        parts.append(f"{skipped} not applicable here (-v says why)")
    if seconds_s is not None:
        parts.append(seconds(seconds_s))
    return " · ".join(parts)


def _fleet_count(reports: Sequence[CheckReport], unreached: int, seconds_s: float) -> str:
    clean = [r for r in reports if not r.failures and not r.warnings]
    parts = []
    if clean:
        fewest, most = min(r.passed for r in clean), max(r.passed for r in clean)
        each = f"{fewest} checks" if fewest == most else f"{fewest} to {most} checks"
        verb = "passes" if len(clean) == 1 else "pass"
        parts.append(f"{count(len(clean), 'host')} {verb} {each}{' each' if len(clean) > 1 else ''}")
    failing = sum(bool(r.failures) for r in reports)
    if failing:
        what = str(failing) if clean else count(failing, "host")
        parts.append(f"{what} {'fails' if failing == 1 else 'fail'}")
    if warnings := sum(len(r.warnings) for r in reports):
        parts.append(count(warnings, "warning"))
    if unreached:
        parts.append(f"{unreached} without an answer")
    return " · ".join([*parts, seconds(seconds_s)])
