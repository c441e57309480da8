"""Check reports as a person reads them: causes, worst first, in two lines each; one line that counts.

The first line is what is wrong and, as far as it has room, what follows from it and how that is known; the second is
what to do. -v has all of it. On a terminal of fewer than WIDE columns both may wrap, and nothing of them is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpunode.advice import listing
from gpunode.model.layers import depth, group_of
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.remedy import NO_REMEDY, Remedy
from gpunode.render.check_rules_text import lowered, profile_lines, rules_lines, unjudged_lines
from gpunode.render.check_values import own_words
from gpunode.render.remedy_text import HOSTS, remedy_text
from gpunode.render.short_text import in_line, shortened, whole_clauses
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import count, fold_hosts, seconds, with_name, without_name

DETAIL = 14  # columns before evidence and remedy of -v
UNDER = "      → "  # before the remedy: it stands under the name of the check
WIDE = 100
IN_FULL = "-v shows all of it"
WORDS = {Severity.ERROR: ("FAIL", "bad"), Severity.WARNING: ("WARN", "warn")}


def check_text(report: CheckReport, style: Style = PLAIN, *, seconds_s: float | None = None, ssh: bool = False) -> str:
    """One host's report, no newline at the end. `ssh`: commands of gpunode in it are shown with --ssh."""
    lines = _findings([report], style, ssh=ssh, named=False)
    lines += rules_lines([report], style) + unjudged_lines([report], style)
    if style.verbose > 0:
        lines += _others(report, style)
    number = _host_count(report, seconds_s, shortened=_is_shortened([report], style))
    lines += hang(style, "", with_name(_name(report), number))
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
    lines += _findings(reports, style, ssh=ssh, named=True)
    lines += rules_lines(reports, style) + unjudged_lines(reports, style)
    if style.verbose > 0:
        for report in reports:
            lines += _others(report, style)
    unreached = len(outcomes) - len(reports)
    lines += hang(style, "", _fleet_count(reports, unreached, seconds_s, shortened=_is_shortened(reports, style)))
    return "\n".join(lines)


def detail(label: str, text: str, style: Style) -> list[str]:
    """`evidence  ...` under a finding; nothing for an empty text."""
    return hang(style, " " * DETAIL + f"{label:<10}", text) if text else []


class _Block(NamedTuple):
    """One thing that is wrong, and all hosts that have it."""

    hosts: tuple[str, ...]
    summary: str
    evidence: str
    remedy: Remedy = NO_REMEDY
    id: str = ""
    severity: Severity = Severity.ERROR
    ssh: bool = False  # its hosts were reached over SSH
    follow: tuple[tuple[str, str, str], ...] = ()  # what it explains: its id, in short, and in full
    foreign: str = ""  # the file of the site's own check that found it
    notes: tuple[tuple[str, str], ...] = ()  # what the site's rules made of it

    @property
    def names(self) -> str:
        """ "gpu[01-03], gpu07", or their number where the names would push the sentence off the line."""
        folded = fold_hosts(self.hosts)
        return folded if len(self.hosts) == 1 or len(folded) <= HOSTS else count(len(self.hosts), "host")

    def first(self, style: Style, lead: str, lead_width: int) -> list[str]:
        """What is wrong, and what of the rest has room in its last line."""
        room = style.width - lead_width
        if not self._is_brief(style):
            return hang(style, lead, self.summary, lead_width=lead_width)
        if style.width < WIDE:
            return hang(style, lead, self.summary + self.so(room - len(in_line(self.summary))), lead_width=lead_width)
        text = in_line(self.summary)
        text += self.so(room - len(text))
        known = f" ({in_line(self.evidence)})"
        return [lead + shortened(text + known if len(text + known) <= room else text, room)]

    def so(self, width: int) -> str:
        """What follows, as the end of a sentence; no more than how much that is where there is no room for one."""
        if not self.follow:
            return ""
        named = fitting([in_line(short) for _, short, _ in self.follow], width - len("; so "))
        number = f"; {len(self.follow)} more {'follows' if len(self.follow) == 1 else 'follow'}"
        return f"; so {named}" if named else number if len(number) <= width else ""

    def _is_brief(self, style: Style) -> bool:
        """A host that was not reached has no check, and all of it is shown."""
        return self.id != "" and style.verbose < 1

    def details(self, style: Style) -> list[str]:
        folded = fold_hosts(self.hosts)
        remedy = remedy_text(self.remedy, self.hosts if self.ssh else ())
        brief = self._is_brief(style)
        return [
            *detail("hosts", folded if folded != self.names else "", style),
            *([] if brief else detail("evidence", self.evidence, style)),
            *(line for label, text in self.notes for line in detail(label, text, style)),
            *(_under(remedy, style) if brief else detail("remedy", remedy, style)),
            *([] if brief else (line for id, _, full in self.follow for line in detail("so", f"{id}: {full}", style))),
            *detail("check", f"of this site, not gpunode's: {self.foreign}" if self.foreign else "", style),
        ]


def _under(remedy: str, style: Style) -> list[str]:
    if style.width < WIDE:
        return hang(style, UNDER, remedy) if remedy else []
    return [UNDER + whole_clauses(in_line(remedy), style.width - len(UNDER))] if remedy else []


def fitting(words: Sequence[str], width: int) -> str:
    """As many as there is room for, and the number of the others; "" where not even one has room."""
    for kept in range(len(words), 0, -1):
        text = listing(words, kept)
        if len(text) <= width:
            return text
    return ""


def _folded(blocks: Sequence[_Block]) -> list[_Block]:
    """Blocks that are equal on several hosts become one, where the first of them stood."""
    together: dict[_Block, list[str]] = {}
    for block in blocks:
        together.setdefault(block._replace(hosts=()), []).extend(block.hosts)
    return [block._replace(hosts=tuple(hosts)) for block, hosts in together.items()]


def _unreached(outcomes: Sequence[HostOutcome], *, ssh: bool) -> list[_Block]:
    unreached = (o for o in outcomes if o.check is None)
    return _folded([_unread(o, ssh) for o in unreached])


def _unread(outcome: HostOutcome, ssh: bool) -> _Block:
    problem = without_name(outcome.target, outcome.problem)
    named = (("check", outcome.check_id),) if outcome.check_id else ()
    return _Block((outcome.target,), problem, outcome.evidence, outcome.remedy, ssh=ssh, notes=named)


def _findings(reports: Sequence[CheckReport], style: Style, *, ssh: bool, named: bool) -> list[str]:
    """`named`: with the names of the hosts in front; of one host the last line says which it is."""
    if style.verbose < 0:
        return []
    found = [_block(r, cause, ssh) for r in reports for cause in r.causes]
    blocks = sorted(_folded(found), key=lambda block: block.severity is not Severity.ERROR)
    names = max((len(b.names) for b in blocks), default=0) if named else 0
    ids = max((len(b.id) for b in blocks), default=0)
    lines = []
    for block in blocks:
        lines += _finding(block, (names, ids), style)
    return lines


def _block(report: CheckReport, cause: CheckResult, ssh: bool) -> _Block:
    finding = cause.outcome
    assert isinstance(finding, Finding)
    follow = tuple(
        (r.id, r.outcome.short + lowered(r.outcome), r.outcome.summary + lowered(r.outcome))
        for r in report.consequences(cause)
        if isinstance(r.outcome, Finding)
    )
    head = (finding.summary, finding.evidence, finding.remedy, cause.id, report.weight(cause))
    return _Block((report.target,), *head, ssh, follow, cause.foreign or "", tuple(own_words(finding)))


def _finding(block: _Block, columns: tuple[int, int], style: Style) -> list[str]:
    word, meaning = WORDS[block.severity]
    names = f"  {block.names:<{columns[0]}} " if columns[0] else ""
    left = f"{names}  {block.id:<{columns[1]}}   "
    width = len(word) + len(left)
    if style.width - width < 40:  # the sentence would be a ribbon: it goes below, where evidence and remedy stand
        lead = [paint(style, meaning, word) + left.rstrip()]
        return [*lead, *block.first(style, " " * DETAIL, DETAIL), *block.details(style)]
    return [*block.first(style, paint(style, meaning, word) + left, width), *block.details(style)]


def _others(report: CheckReport, style: Style) -> list[str]:
    """What passes in a line a group, lowest layer first; then what has no verdict, each with its reason."""
    passed = [id for id, result in report.results.items() if result.outcome is None]
    groups = sorted({group_of(id) for id in passed}, key=depth)
    width = max(map(len, groups), default=0)
    lines = []
    for group in groups:
        names = ", ".join(id.removeprefix(f"{group}.") for id in passed if group_of(id) == group)
        lead = f"{paint(style, 'good', 'pass')}  {group:<{width}}   "
        lines += hang(style, lead, names, lead_width=9 + width)
        lines += _seen(group, report, style)
    return lines + _without_verdict(report, style) + profile_lines(report, style)


def _seen(group: str, report: CheckReport, style: Style) -> list[str]:
    """What checks that passed saw, as far as they say it."""
    said = {id: r.evidence for id, r in report.results.items() if r.outcome is None and r.evidence}
    return [
        line for id, seen in said.items() if group_of(id) == group for line in detail("saw", f"{id}: {seen}", style)
    ]


def _without_verdict(report: CheckReport, style: Style) -> list[str]:
    ids = max((len(i) for i in report.results), default=0)
    lines = []
    for id in sorted(report.results, key=lambda id: (depth(id), id)):
        outcome = report.results[id].outcome
        if isinstance(outcome, NotApplicable):
            lead = f"{paint(style, 'dim', 'n/a ')}  {id:<{ids}}   "
            lines += hang(style, lead, outcome.reason, lead_width=9 + ids)
    return lines


def _is_shortened(reports: Sequence[CheckReport], style: Style) -> bool:
    return style.verbose == 0 and any(report.causes for report in reports)


def _name(report: CheckReport) -> str:
    """As the user named the host; this machine by its own name."""
    return report.own_name or report.target


def _host_count(report: CheckReport, seconds_s: float | None, *, shortened: bool) -> str:
    why = "" if shortened else " (-v shows why)"
    parts = [f"{count(report.passed, 'check')} {'passes' if report.passed == 1 else 'pass'}"]
    weights = [report.weight(cause) for cause in report.causes]
    if failing := weights.count(Severity.ERROR):
        parts.append(f"{failing} {'fails' if failing == 1 else 'fail'}")
    if warned := weights.count(Severity.WARNING):
        parts.append(count(warned, "warning"))
    if follow := sum(len(report.consequences(cause)) for cause in report.causes):
        parts.append(f"{follow} more {'follows' if follow == 1 else 'follow'}")
    if report.acknowledged:
        parts.append(f"{len(report.acknowledged)} acknowledged")
    if report.not_applicable:
        parts.append(f"{report.not_applicable} not applicable here{why}")
    if report.left_out:
        parts.append(f"{report.left_out} left out{'' if report.not_applicable else why}")
    if report.profile:
        parts.append(f"profile {report.profile.name}")
    if shortened:
        parts.append(IN_FULL)
    if seconds_s is not None:
        parts.append(seconds(seconds_s))
    return " · ".join(parts)


def _fleet_count(reports: Sequence[CheckReport], unreached: int, seconds_s: float, *, shortened: bool) -> str:
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
    if warnings := sum(r.weight(cause) is Severity.WARNING for r in reports for cause in r.causes):
        parts.append(count(warnings, "warning"))
    if accepted := sum(len(r.acknowledged) for r in reports):
        parts.append(f"{accepted} acknowledged")
    if left_out := max((r.left_out for r in reports), default=0):
        parts.append(f"{'up to ' if len(reports) > 1 else ''}{left_out} left out")
    if kinds := sorted({r.profile.name for r in reports if r.profile}):
        parts.append(f"profile{'s' if len(kinds) > 1 else ''} {', '.join(kinds)}")
    if unreached:
        parts.append(f"{unreached} without a report")
    if shortened:
        parts.append(IN_FULL)
    return " · ".join([*parts, seconds(seconds_s)])
