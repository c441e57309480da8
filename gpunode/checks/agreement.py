"""check and plan agree: no remedy names a setup that is refused, or that does nothing about the finding.

A refusal of the planner is a finding (checks/setup.py), and the cause of those that it explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from gpunode.checks.one_command import Answer, Mended, with_one_command
from gpunode.errors import GpunodeError
from gpunode.model.facts import HostFacts
from gpunode.model.installed import signs_of_driver
from gpunode.model.plan import Plan, engine_step
from gpunode.model.report import CheckReport, CheckResult, Finding, Severity
from gpunode.model.spec import PARTS
from gpunode.remedy import Command, Remedy, RepairAction, setup
from gpunode.values import dataclass

Planned = Callable[[tuple[str, ...]], Plan]  # the plan of setup with these options; raises GpunodeError


@dataclass(frozen=True)
class _Refusal:
    problem: str
    evidence: str
    remedy: Remedy


@dataclass(frozen=True)
class _Idle:
    """The plan has no step for the finding."""

    reason: str


@dataclass(frozen=True)
class _Asked:
    """A finding, the setup that its remedy begins with, and what the planner answers to that.

    Of two engines that one finding is about, it may plan one (`answer`) and refuse the other (`refused`).
    """

    result: CheckResult
    finding: Finding
    command: Command
    answer: Plan | _Idle | None  # None: it is refused
    refused: tuple[_Refusal, ...] = ()

    @property
    def part(self) -> str:
        return self.command.options[1].split(",")[0]  # after --only

    def with_remedy(self, remedy: Remedy, cause: str | None = None) -> CheckResult:
        return replace(self.result, outcome=replace(self.finding, remedy=remedy, cause=cause))


def agreed(report: CheckReport, planned: Planned) -> CheckReport:
    """The report as the planner's answers make it."""
    facts = report.facts
    if facts is None:
        return report

    @cache
    def answer(options: tuple[str, ...]) -> Plan | GpunodeError:
        try:
            return planned(options)
        except GpunodeError as error:
            return error

    asked = tuple(_asked(report, facts, answer))
    mended = [Mended(one.command, one.answer) for one in asked if isinstance(one.answer, Plan)]
    changed = {
        **{f"setup.{one.part}": _pass(report, one) for one in asked if isinstance(one.answer, Plan)},
        **{one.result.id: _idle(one, one.answer) for one in asked if isinstance(one.answer, _Idle)},
        **_refused(report, facts, [one for one in asked if one.refused]),
    }
    return with_one_command(replace(report, results={**report.results, **changed}), mended, answer)


def _asked(report: CheckReport, facts: HostFacts, answer: Answer) -> Iterator[_Asked]:
    engines = {engine_step(one.label) for one in facts.runtimes}
    for result in (*report.failures, *report.warnings):
        assert isinstance(result.outcome, Finding)
        parts = result.outcome.remedy.parts
        command = next((p for p in parts if isinstance(p, Command) and p.verb == "setup"), None)
        if isinstance(parts[0], Command) and command is not None:
            yield _answered(facts, result, command, answer)
        elif engines.intersection(result.outcome.steps):
            # A manual step is first: it may be for an engine that setup refuses.
            other = _answered(facts, result, setup("--only", "runtime"), answer)
            yield replace(other, answer=None)


def _answered(facts: HostFacts, result: CheckResult, command: Command, answer: Answer) -> _Asked:
    finding, plan = result.outcome, answer(command.options)
    assert isinstance(finding, Finding)
    # Without root much is unread, and the planner refuses to go by that: it says nothing of the host.
    if isinstance(plan, GpunodeError):
        said = _Refusal(plan.problem.removeprefix(f"{facts.hostname}: "), plan.evidence, plan.remedy)
        return _Asked(result, finding, command, None, (said,) if facts.root else ())
    kept = [one for one in plan.refused if one.id in finding.steps and facts.root]
    refused = tuple(_Refusal(one.text, one.evidence, one.remedy) for one in kept)
    if plan.reboot or any(not finding.steps or step.id in finding.steps for step in plan.steps):
        return _Asked(result, finding, command, plan, refused)
    return _Asked(result, finding, command, None if refused else _why_idle(finding, command, plan), refused)


def _why_idle(finding: Finding, command: Command, plan: Plan) -> _Idle:
    ids = (*finding.steps, f"{command.options[1]}.install")
    kept = sorted(plan.kept, key=lambda one: ids.index(one.id) if one.id in ids else len(ids))
    return _Idle((kept[0].by_hand or kept[0].text) if kept else "nothing is left to do")


def _pass(report: CheckReport, one: _Asked) -> CheckResult:
    return replace(report.results[f"setup.{one.part}"], outcome=None)


def _idle(one: _Asked, answer: _Idle) -> CheckResult:
    words = Remedy(RepairAction.NONE, f"setup changes nothing here: {answer.reason}")
    return one.with_remedy(one.finding.otherwise or words)


def _refused(report: CheckReport, facts: HostFacts, asked: Sequence[_Asked]) -> dict[str, CheckResult]:
    """The refusals of each part become one finding, and what refuses the whole host that of the first part.

    It is the cause of what it explains (causes.py).
    """
    changed: dict[str, CheckResult] = {}
    causes: dict[str, list[_Asked]] = {}
    same: dict[str, str] = {}
    for one in sorted(asked, key=lambda one: PARTS.index(one.part)):
        first = same.setdefault(one.refused[0].problem, f"setup.{one.part}")
        causes.setdefault(_cause(report, one) or first, []).append(one)
    for cause, ones in causes.items():
        for one in (one for one in ones if one.answer is None):
            words = f"setup is refused, and {cause} shows why: that comes first"
            blocked = Remedy(one.refused[0].remedy.action, words)
            explained = cause if _explains(facts, one) else None
            changed[one.result.id] = one.with_remedy(one.finding.otherwise or blocked, explained)
        if cause.startswith("setup."):
            changed[cause] = replace(report.results[cause], outcome=_refusal(ones))
    return changed


def _explains(facts: HostFacts, one: _Asked) -> bool:
    """An engine that setup refuses is as its admin made it; a driver or toolkit that cannot be installed is missing.

    One that is there and should change has a fault of its own. GPUs in use say nothing of any fault.
    """
    if one.refused[0].remedy.action is RepairAction.WAIT:
        return False
    absent = {
        "driver": facts.driver.loaded is None and not signs_of_driver(facts),
        "toolkit": facts.toolkit.version is None,
    }
    return absent.get(one.part, bool(one.finding.steps))


def _cause(report: CheckReport, one: _Asked) -> str | None:
    """The finding that quotes what the planner stumbled on: a file that does not parse."""
    findings = ((id, r.outcome.evidence) for id, r in report.results.items() if isinstance(r.outcome, Finding))
    return next((id for id, evidence in findings if one.refused[0].problem in evidence), None)


def _refusal(asked: Sequence[_Asked]) -> Finding:
    """Several engines of one host may be refused, each for its own reason."""
    refusals = list(dict.fromkeys(refusal for one in asked for refusal in one.refused))
    parts = [part for refusal in refusals if refusal.remedy for part in ("; ", *refusal.remedy.parts)]
    severities = {one.result.found for one in asked}
    return Finding(
        "; ".join(refusal.problem for refusal in refusals),
        evidence="; ".join(refusal.evidence for refusal in refusals if refusal.evidence),
        remedy=Remedy(refusals[0].remedy.action, *parts[1:]),
        severity=Severity.ERROR if Severity.ERROR in severities else Severity.WARNING,
    )
