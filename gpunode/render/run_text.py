"""Setup as it happens and as it ended."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.errors import SEVERITY, ExitCode
from gpunode.model.plan import Kept
from gpunode.model.report import Event, EventKind, HostOutcome, RunReport, StepResult, StepStatus, Untouched
from gpunode.remedy import Command, Remedy
from gpunode.render.clean import clean_line
from gpunode.render.failed_hosts import failed_lines
from gpunode.render.plan_text import refusal_words
from gpunode.render.remedy_text import remedy_text
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import CODE_WORDS, count, ending_word, fold_hosts, outcome_counts, seconds, without_name

MEANING = {
    StepStatus.DONE: "good",
    StepStatus.FAILED: "bad",
    StepStatus.ROLLBACK_FAILED: "bad",
    StepStatus.UNDONE: "dim",
    StepStatus.SKIPPED: "dim",
}


def event_line(event: Event, style: Style = PLAIN) -> str | None:
    """One plain line of progress; None for what is not shown at this verbosity."""
    if style.verbose < 0:
        return None
    target, step, text = clean_line(event.target), clean_line(event.step), clean_line(event.text)
    if event.kind is EventKind.STEP_END and event.status is not None:
        word = f"{event.status.value:<8}"
        message = f" {text}" if text and event.status is not StepStatus.DONE else ""
        took = f"  {seconds(event.seconds)}"
        return f"{target}  {paint(style, MEANING[event.status], word)}  {step}{message}{took}"
    if event.kind is EventKind.STEP_BEGIN:
        return f"{target}  begins    {step}  {text}".rstrip()
    return f"{target}  {text}"


def run_text(report: RunReport, style: Style = PLAIN, *, seconds_s: float | None = None, ssh: bool = False) -> str:
    """How setup ended on one host, no newline at the end. `ssh`: its remedies are typed with --ssh."""
    head = _headline(report)
    if seconds_s is not None:
        head += f" · {seconds(seconds_s)}"
    lines = hang(
        style, paint(style, _meaning(report.code), report.target) + "   ", head, lead_width=len(report.target) + 3
    )
    return "\n".join(lines + _body(report, style, (report.target,) if ssh else ()))


def _body(report: RunReport, style: Style, hosts: Sequence[str]) -> list[str]:
    """What stands below the headline; `hosts`: those of its remedies, () where gpunode runs on the host itself."""
    lines = [line for step in report.steps for line in _step(step, style, hosts)]
    for name, words in (pair for kept in _refused(report) for pair in refusal_words(kept, hosts)):
        lines += hang(style, f"  {name.lower():<9} ", words)
    for kept in report.plan.kept if report.plan else ():
        lines += hang(style, "  beware    ", kept.text) if kept.beware else []
    shown = {text for s in report.steps if s.error for text in (s.error, f"{s.id}: {s.error}")}
    if report.error in shown:
        return lines
    for label, text in (
        ("problem", report.error),
        ("reboot", report.reboot),
        *(("manual step", w) for w in report.by_hand),
    ):
        lines += hang(style, f"  {label:<9} ", text) if text else []
    return lines + _more(report.evidence, report.remedy, style, hosts)


def _meaning(code: ExitCode) -> str:
    return {ExitCode.DONE: "good", ExitCode.REBOOT_NEEDED: "warn"}.get(code, "bad")


def _headline(report: RunReport) -> str:
    done = sum(s.status is StepStatus.DONE for s in report.steps)
    if report.code is ExitCode.DONE:
        undo = report.plan is not None and report.plan.undo is not None
        nothing = "nothing to undo" if undo else "no changes: this host matches the spec"
        return f"{count(done, 'step')} done" if done else nothing
    if _refused(report) and report.code is ExitCode.UNSUPPORTED:
        return f"{count(done, 'step')} done, refused: {', '.join(kept.id for kept in _refused(report))}"
    words = "manual step required" if report.by_hand else CODE_WORDS[report.code]
    return words + (f" after {count(done, 'step')} done" if done else "")


def _refused(report: RunReport) -> tuple[Kept, ...]:
    return report.plan.refused if report.plan else ()


def _step(step: StepResult, style: Style, hosts: Sequence[str]) -> list[str]:
    if step.status is StepStatus.DONE and style.verbose <= 0:
        return []
    word = {StepStatus.FAILED: "FAILED", StepStatus.ROLLBACK_FAILED: "BROKEN"}.get(step.status, step.status.value)
    lead = "  " + paint(style, MEANING[step.status], f"{word:<8}") + f"  {step.id}   "
    text = step.error or (seconds(step.seconds) if step.seconds else "")
    lines = hang(style, lead, text, lead_width=15 + len(step.id)) if text else [lead.rstrip()]
    return lines + _more(step.evidence, step.remedy, style, hosts)


def _more(evidence: str, remedy: Remedy, style: Style, hosts: Sequence[str]) -> list[str]:
    lines = hang(style, "  evidence  ", evidence) if evidence else []
    return lines + (hang(style, "  remedy    ", remedy_text(remedy, hosts)) if remedy else [])


def fleet_run_text(
    outcomes: Sequence[HostOutcome],
    style: Style = PLAIN,
    *,
    seconds_s: float = 0.0,
    ssh: bool = False,
    retry: Command | None = None,
) -> str:
    """How setup ended on each host, the counts, and of several hosts those that did not end well, to be pasted, with
    what tries them again (`retry`).
    """
    lines = endings(outcomes, style, ssh=ssh)
    counts = f"{count(len(outcomes), 'host')}: {outcome_counts(outcomes)}"
    lines += hang(style, "", f"{counts} · {seconds(seconds_s)}")
    return "\n".join(lines + failed_lines(outcomes, style, ssh=ssh, retry=retry))


def endings(outcomes: Sequence[HostOutcome], style: Style = PLAIN, *, ssh: bool = False) -> list[str]:
    """How setup ended on each host: the same ending once with all its hosts' names, worst first."""
    lines: list[str] = []
    groups: dict[tuple[ExitCode, tuple[str, str]], list[HostOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.code, _ending(outcome, style)), []).append(outcome)
    for (code, _), same in sorted(groups.items(), key=lambda g: SEVERITY.index(g[0][0])):
        targets = [o.target for o in same]
        names = fold_hosts(targets)
        head, body = _ending(same[0], style, targets if ssh else ())
        lines += hang(style, paint(style, _meaning(code), names) + "   ", head, lead_width=len(names) + 3)
        lines += [body] if body else []
    return lines


def _ending(outcome: HostOutcome, style: Style, hosts: Sequence[str] = ()) -> tuple[str, str]:
    """Headline and what stands below it; without the host's name, so that equal endings compare equal."""
    if outcome.run is None:
        below = _more(outcome.evidence, outcome.remedy, style, hosts)
        head = without_name(outcome.target, outcome.problem) or ending_word(outcome)
        lead = "skipped: " if outcome.untouched is Untouched.SKIPPED else ""
        return lead + head, "\n".join(below)
    return _headline(outcome.run), "\n".join(_body(outcome.run, style, hosts))
