"""`check --fix` as a person reads it: what would be done and what is left to them; then what is gone and what stays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gpunode.model.report import CheckReport, Finding, HostOutcome
from gpunode.render.check_text import detail
from gpunode.render.plan_text import plans_text
from gpunode.render.remedy_text import remedy_text
from gpunode.render.run_text import fleet_run_text, run_text
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import count, outcome_counts, seconds, with_name


def before_text(outcomes: Sequence[HostOutcome], style: Style = PLAIN, *, ssh: bool = False) -> str:
    """The plans, then by host what is not done and why, with the command that a person types."""
    plans = [h.plan for h in outcomes if h.plan]
    blocks = [plans_text(plans, style)] if plans else []
    blocks += ["\n".join(lines) for h in outcomes if (lines := _left(h, style, several=len(outcomes) > 1, ssh=ssh))]
    blocks += [_unreached(outcomes, style, ssh=ssh)] if any(h.check is None for h in outcomes) else []
    return "\n\n".join(blocks)


def after_text(
    outcomes: Sequence[HostOutcome], style: Style = PLAIN, *, seconds_s: float = 0.0, ssh: bool = False
) -> str:
    """How each run ended, what it mended, and what stays."""
    blocks = []
    for outcome in outcomes:
        lines = [run_text(outcome.run, style, ssh=ssh)] if outcome.run else []
        lines += _gone(outcome, style) + _left(outcome, style, several=outcome.run is None, ssh=ssh)
        blocks += ["\n".join(lines)] if lines else []
    blocks += [_unreached(outcomes, style, ssh=ssh)] if any(_silent(h) for h in outcomes) else []
    codes = outcome_counts(outcomes)
    tail = f"{count(len(outcomes), 'host')}: {codes} · {seconds(seconds_s)}" if len(outcomes) > 1 else ""
    return "\n\n".join([*blocks, *([tail] if tail else [])])


def _silent(outcome: HostOutcome) -> bool:
    return outcome.check is None and outcome.run is None


def _unreached(outcomes: Sequence[HostOutcome], style: Style, *, ssh: bool) -> str:
    return fleet_run_text([h for h in outcomes if _silent(h)], style, ssh=ssh)


def _gone(outcome: HostOutcome, style: Style) -> list[str]:
    lines = []
    for id in outcome.gone:
        found = outcome.before.findings[id] if outcome.before else None
        lead = "  " + paint(style, "good", "gone") + f"   {id}   "
        lines += hang(style, lead, found.summary if found else "", lead_width=len(id) + 12)
    return lines


def _left(outcome: HostOutcome, style: Style, *, several: bool, ssh: bool) -> list[str]:
    """What a person has to do, cause by cause; findings that only follow from another are not said twice."""
    report = outcome.check
    if report is None:
        return []
    stays = outcome.before is not None
    found = [(id, one) for id, one in _causes(report) if stays or one.fix is None or not one.fix.safe]
    said = partial(with_name, outcome.target) if several else str
    if not found:
        nothing = "no finding is left" if stays or outcome.plan is None else ""
        return hang(style, "", said(nothing)) if nothing else []
    word = "stays" if stays else "by hand"
    lines = hang(style, "", said("not done, since it is a person's to do")) if not stays or several else []
    for id, finding in found:
        lead = "  " + paint(style, "warn", word) + f"  {id}   "
        lines += hang(style, lead, finding.summary, lead_width=len(word) + len(id) + 7)
        lines += detail("why", _why(finding), style)
        lines += detail("remedy", remedy_text(finding.remedy, (outcome.target,) if ssh else ()), style)
    return lines


def _causes(report: CheckReport) -> list[tuple[str, Finding]]:
    """Causes, worst first; and what is not mended with its cause."""
    causes = [result.id for result in report.causes]
    more = [id for id, one in report.findings.items() if id not in causes and _is_apart(report, one)]
    return [(id, report.findings[id]) for id in (*causes, *more)]


def _is_apart(report: CheckReport, finding: Finding) -> bool:
    """Whether it is left to a person though its cause is mended."""
    cause = report.findings.get(finding.cause or "")
    mended = cause is not None and cause.fix is not None and cause.fix.safe
    return mended and not (finding.fix is not None and finding.fix.safe)


def _why(finding: Finding) -> str:
    if finding.fix is None or finding.fix.safe:
        return "its steps were done, or could not be; what the run says comes first"
    return finding.fix.why
