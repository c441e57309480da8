"""What a site's rules and the words that were typed made of findings: those that are accepted, in a line each, rules
that match nothing, and hosts on which nothing of what was asked for could be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpunode.advice import listing
from gpunode.model.report import CheckReport, Finding, NotApplicable
from gpunode.render.check_values import own_words
from gpunode.render.remedy_text import HOSTS
from gpunode.render.style import Style, hang, paint
from gpunode.render.wording import count, fold_hosts


def rules_lines(reports: Sequence[CheckReport], style: Style) -> list[str]:
    """What is equal on several hosts is shown once; a rule is idle where it matches on none of them."""
    if style.verbose < 0:
        return []
    accepted: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        for result in report.acknowledged:
            assert isinstance(result.outcome, Finding)
            words = "; ".join(text for _, text in own_words(result.outcome))
            accepted.setdefault((result.id, f"{result.outcome.summary} (acknowledged {words})"), []).append(
                report.target
            )
    lines = []
    for (id, text), hosts in accepted.items():
        names = fold_hosts(tuple(hosts))
        lead = f"{paint(style, 'dim', 'ack ')}  {names}   {id}   "
        lines += hang(style, lead, text, lead_width=12 + len(names) + len(id))
    for text in _idle(reports):
        lines += hang(style, f"{paint(style, 'dim', 'note')}  ", f"the acknowledgement {text}", lead_width=6)
    return lines


def unjudged_lines(reports: Sequence[CheckReport], style: Style) -> list[str]:
    """Hosts on which all that was asked for is not applicable, with why: no finding, and no pass either. What is equal
    on several hosts is shown once; -v has each check with its reason.
    """
    if style.verbose != 0:
        return []
    unjudged: dict[str, list[str]] = {}
    for report in reports:
        if report.not_applicable and report.not_applicable + report.left_out == len(report.results):
            unjudged.setdefault(_why_none(report), []).append(report.target)
    lines = []
    for text, hosts in unjudged.items():
        folded = fold_hosts(tuple(hosts))
        names = folded if len(hosts) == 1 or len(folded) <= HOSTS else count(len(hosts), "host")
        lead = f"{paint(style, 'dim', 'note')}  {f'{names}   ' if len(reports) > 1 else ''}"
        lines += hang(style, lead, text, lead_width=6 + (len(names) + 3) * (len(reports) > 1))
    return lines


def _why_none(report: CheckReport) -> str:
    outcomes = (result.outcome for result in report.results.values())
    reasons = dict.fromkeys(one.reason for one in outcomes if isinstance(one, NotApplicable) and not one.left_out)
    number = report.not_applicable
    which = f"none of the {number} checks asked for applies" if number > 1 else "the check asked for does not apply"
    return f"{which} here: {listing(reasons, 2, between='; ')}"


def _idle(reports: Sequence[CheckReport]) -> Iterable[str]:
    """What matches nothing on any host; on a single one with the reason."""
    if len(reports) == 1:
        pairs = (text.partition(": ") for text in reports[0].idle)
        return [f"of {rule} matches no finding: {why}" for rule, _, why in pairs]
    rules = [{text.partition(": ")[0] for text in report.idle} for report in reports]
    return [f"of {rule} matches no finding on any host" for rule in sorted(set.intersection(*rules) if rules else ())]


def lowered(finding: Finding) -> str:
    """Behind what follows from a cause: an error that counts as a warning is not to look like one by itself."""
    if finding.weighed is None or not finding.weighed.lowered:
        return ""
    return f" (warning as {finding.weighed.by} says)"


def profile_lines(report: CheckReport, style: Style) -> list[str]:
    chosen = report.profile
    return hang(style, "as    ", f"{chosen.title} (profile {chosen.name}: {chosen.why})") if chosen else []
