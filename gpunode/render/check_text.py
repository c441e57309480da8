"""Check reports as a person reads them: worst first, one finding a block, then one line that counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.remedy import NO_REMEDY, Remedy
from gpunode.render.remedy_text import HOSTS, remedy_text
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import count, fold_hosts, seconds, without_name

DETAIL = 14  # columns before evidence and remedy
WORDS = {Severity.ERROR: ("FAIL", "bad"), Severity.WARNING: ("WARN", "warn")}


def check_text(report: CheckReport, style: Style = PLAIN, *, seconds_s: float | None = None, ssh: bool = False) -> str:
    """One host's report, no newline at the end. `ssh`: commands of gpunode in it are shown with --ssh."""
    lines = _findings([report], style, ssh=ssh)
    if style.verbose > 0:
        lines += _others(report, style)
    lines += hang(style, "", _host_count(report, seconds_s))
    return "\n".join(lines)


def fleet_check_text(
    outcomes: Sequence[HostOutcome], style: Style = PLAIN, *, seconds_s: float = 0.0, ssh: bool = False
) -> str:
    """A fleet's reports; hosts that gave none come first, with the reason. What is equal on several is shown once."""
    lines = []
    for block in _unreached(outcomes, ssh=ssh):
        names = block.names
        lines += hang(style, f"{paint(style, 'bad', 'FAIL')}  {names}   ", block.summary, lead_width=9 + len(names))
        lines += block.details(style)
    reports = [o.check for o in outcomes if o.check is not None]
    lines += _findings(reports, style, ssh=ssh)
    if style.verbose > 0:
        for report in reports:
            lines += _others(report, style)
    lines += hang(style, "", _fleet_count(reports, len(outcomes) - len(reports), seconds_s))
    return "\n".join(lines)


def detail(label: str, text: str, style: Style) -> list[str]:
    """`evidence  ...` under a finding; nothing for an empty text."""
    return hang(style, " " * DETAIL + f"{label:<10}", text) if text else []


@dataclass(frozen=True)
class _Block:
    """One thing that is wrong, and all hosts that have it."""

    hosts: tuple[str, ...]
    summary: str
    evidence: str
    remedy: Remedy = NO_REMEDY
    id: str = ""
    severity: Severity = Severity.ERROR
    ssh: bool = False  # its hosts were reached over SSH

    @property
    def names(self) -> str:
        """ "gpu[01-03], gpu07", or their number where the names would push the sentence off the line."""
        folded = fold_hosts(self.hosts)
        return folded if len(self.hosts) == 1 or len(folded) <= HOSTS else count(len(self.hosts), "host")

    def details(self, style: Style) -> list[str]:
        folded = fold_hosts(self.hosts)
        return [
            *detail("hosts", folded if folded != self.names else "", style),
            *detail("evidence", self.evidence, style),
            *detail("remedy", remedy_text(self.remedy, self.hosts if self.ssh else ()), style),
        ]


def _folded(blocks: Sequence[_Block]) -> list[_Block]:
    """Blocks that are equal on several hosts become one, where the first of them stood."""
    together: dict[_Block, list[str]] = {}
    for block in blocks:
        together.setdefault(replace(block, hosts=()), []).extend(block.hosts)
    return [replace(block, hosts=tuple(hosts)) for block, hosts in together.items()]


def _unreached(outcomes: Sequence[HostOutcome], *, ssh: bool) -> list[_Block]:
    unreached = (o for o in outcomes if o.check is None)
    return _folded(
        [_Block((o.target,), without_name(o.target, o.problem), o.evidence, o.remedy, ssh=ssh) for o in unreached]
    )


def _findings(reports: Sequence[CheckReport], style: Style, *, ssh: bool) -> list[str]:
    if style.verbose < 0:
        return []
    found = [_block(r.target, f, Severity.ERROR, ssh) for r in reports for f in r.failures]
    found += [_block(r.target, w, Severity.WARNING, ssh) for r in reports for w in r.warnings]
    blocks = _folded(found)
    names = max((len(b.names) for b in blocks), default=0)
    ids = max((len(b.id) for b in blocks), default=0)
    lines = []
    for block in blocks:
        lines += _finding(block, (names, ids), style)
    return lines


def _block(target: str, result: CheckResult, severity: Severity, ssh: bool) -> _Block:
    assert isinstance(result.outcome, Finding)
    finding = result.outcome
    return _Block((target,), finding.summary, finding.evidence, finding.remedy, result.id, severity, ssh)


def _finding(block: _Block, columns: tuple[int, int], style: Style) -> list[str]:
    word, meaning = WORDS[block.severity]
    left = f"  {block.names:<{columns[0]}}   {block.id:<{columns[1]}}   "
    width = len(word) + len(left)
    if style.width - width < 40:  # the sentence would be a ribbon: it goes below, where evidence and remedy stand
        lines = [paint(style, meaning, word) + left.rstrip(), *hang(style, " " * DETAIL, block.summary)]
    else:
        lines = hang(style, paint(style, meaning, word) + left, block.summary, lead_width=width)
    return [*lines, *block.details(style)]


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
        parts.append(f"{skipped} not applicable here (-v shows why)")
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
        parts.append(f"{unreached} without a report")
    return " · ".join([*parts, seconds(seconds_s)])
