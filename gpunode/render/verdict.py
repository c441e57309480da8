"""One host in one line and one number, for callers that read no more: Node Problem Detector, Slurm, LBNL NHC.

The number is 0 for a node that may have work, 1 for one that may not, 2 where that is not known: these are the exit
codes of Node Problem Detector's custom plugins (OK, NonOK, Unknown).
"""

from __future__ import annotations

from gpunode.advice import and_more
from gpunode.model.layers import LAYERS, group_of
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.render.check_values import line, standing
from gpunode.render.wording import count

FIT, UNFIT, UNKNOWN = 0, 1, 2
OWN_TABLES = "sec.cve-db-age"  # the one check that is of no host
ASIDE = ("toolkit", "OS", "fleet")  # layers whose checks pass on hosts that have no GPU, driver or engine as well
NPD_BYTES = 80  # Node Problem Detector's own default of max_output_length; it would cut inside of a character
NHC_BYTES = 160  # a reason of Slurm, which `sinfo -R` shows on one line


def verdict(outcome: HostOutcome, *, strict: bool, most: int, lead: str = "") -> tuple[int, str]:
    """The number, and the line in at most `most` bytes. With `strict` a warning is enough to keep work away."""
    report = outcome.check
    if report is None:
        return UNKNOWN, no_verdict(outcome.problem, most, lead)
    if found := _reasons(report, strict):
        more = f" ({and_more(len(found) - 1)})" if len(found) > 1 else ""
        return UNFIT, fitted(f"{lead}{_said(found[0])}", most, more)
    if not judged(report):
        return UNKNOWN, no_verdict("no check of a GPU, driver or engine applies here", most, lead)
    warned = f", {count(len(report.warnings), 'warning')}" if report.warnings else ""
    passing = f"{count(report.passed, 'check')} {'passes' if report.passed == 1 else 'pass'}"
    return FIT, fitted(f"{lead}{passing}{warned}", most)


def no_verdict(why: str, most: int, lead: str = "") -> str:
    return fitted(f"{lead}no verdict: {line(why)}", most)


def _reasons(report: CheckReport, strict: bool) -> list[CheckResult]:
    """Causes, worst first: what follows from them is no further reason."""
    return [cause for cause in report.causes if strict or report.weight(cause) is Severity.ERROR]


def judged(report: CheckReport) -> bool:
    """Whether gpunode itself had a verdict on a GPU, the driver or an engine.

    Where none of their checks was asked for (--only 'os.*'), any verdict will do but that on gpunode's own tables.
    """
    own = [r for r in report.results.values() if not r.foreign and r.id != OWN_TABLES]
    asked = [r for r in own if not (isinstance(r.outcome, NotApplicable) and r.outcome.left_out)]
    of_gpus = [r for r in asked if LAYERS.get(group_of(r.id)) not in ASIDE]
    return any(standing(r) != "not-applicable" for r in of_gpus or asked)


def _said(result: CheckResult) -> str:
    assert isinstance(result.outcome, Finding)
    return f"{result.id}: {line(result.outcome.summary)}"


def fitted(text: str, most: int, end: str = "") -> str:
    """`text` and `end` in at most `most` bytes of UTF-8, whole characters; `text` is cut where it is too long."""
    room = most - len(end.encode())
    data = text.encode("utf-8", "replace")
    if len(data) > room:
        text = data[: room - 3].decode("utf-8", "ignore") + "..."
    return text + end
