"""What the formats for other programs have in common: the name of a host, the standing of a check, a safe line."""

from __future__ import annotations

from gpunode.masking import masked
from gpunode.model.report import CheckResult, Finding, HostOutcome, NotApplicable
from gpunode.regex import regex
from gpunode.render.clean import clean, clean_line

LINE, LINES = 2000, 20_000  # characters that a line or a text may have: what reads it may be bounded as well
_NO_XML = regex("[\ufffe\uffff]")  # with the C0 and surrogates that `clean` shows, all that XML 1.0 does not take


def host_name(outcome: HostOutcome) -> str:
    """As the user named it; this machine by its own name."""
    return line((outcome.check.own_name if outcome.check else "") or outcome.target)


def standing(result: CheckResult) -> str:
    """pass | warning | error | acknowledged | not-applicable."""
    match result.outcome:
        case None:
            return "pass"
        case NotApplicable():
            return "not-applicable"
        case Finding(accepted=True):
            return "acknowledged"
        case Finding():
            return result.found.value


def own_words(finding: Finding) -> list[tuple[str, str]]:
    """(label, sentence): who made it as severe as it is, and what became of its acknowledgement."""
    said = []
    if (weighed := finding.weighed) and finding.severity:
        why = f" ({weighed.reason})" if weighed.reason else ""
        said.append(
            ("severity", f"{finding.severity.value}, as {weighed.by} says{why}; {weighed.before.value} by itself")
        )
    if (mark := finding.acknowledged) is not None:
        ended = f"the acknowledgement ended on {mark.expires}" if mark.ended else f"until {mark.expires}"
        said.append(("accepted", f"{ended}: {mark.reason}"))
    return said


def line(text: str) -> str:
    """One line, without secrets, control characters and what no XML holds. For formats that `deliver` does not mask."""
    return _NO_XML.sub("?", clean_line(masked(cut(text, LINE), "lines")))


def lines(text: str) -> str:
    """The same for a text of several lines."""
    return _NO_XML.sub("?", clean(masked(cut(text, LINES), "lines")))


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
