"""Findings that the spec accepts until a day: each of them, and nothing that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from gpunode.model.entities import Entity, EntityKind
from gpunode.model.facts import HostFacts
from gpunode.model.report import Acknowledged, CheckReport, CheckResult, Finding, NotApplicable
from gpunode.model.rules import Acknowledgement


def accepted(report: CheckReport, rules: Sequence[Acknowledgement], today: date) -> CheckReport:
    """The report with its accepted findings marked, and the rules that match nothing here (`idle`).

    A rule for one entity accepts a finding only together with rules for all others that it is about.
    """
    results, idle = dict(report.results), []
    for id in dict.fromkeys(rule.id for rule in rules):
        mine = [rule for rule in rules if rule.id == id]
        result = report.results.get(id)
        used = _matching(result, mine, report.facts) if result else []
        if result and used and isinstance(result.outcome, Finding):
            results[id] = _marked(result, result.outcome, used, report.facts, today)
        # One that names only some of what a finding is about accepts nothing, and that is said as well.
        in_vain = mine if results.get(id) is result else [rule for rule in mine if rule not in used]
        idle += [f"{rule}: {_why(result)}" for rule in in_vain]
    return replace(report, results=results, idle=tuple(idle))


def _matching(result: CheckResult, rules: Sequence[Acknowledgement], facts: HostFacts | None) -> list[Acknowledgement]:
    if not isinstance(result.outcome, Finding):
        return []
    about = {name for entity in result.outcome.entities for name in _names(entity, facts)}
    return [rule for rule in rules if rule.entity is None or _plain(rule.entity, facts) in about]


def _marked(
    result: CheckResult, finding: Finding, rules: list[Acknowledgement], facts: HostFacts | None, today: date
) -> CheckResult:
    live = [rule for rule in rules if today <= rule.expires]
    if _covers(live, finding, facts):
        first = min(live, key=lambda rule: rule.expires)
        mark = Acknowledged(_reasons(live), first.expires.isoformat())
    elif len(live) < len(rules) and _covers(rules, finding, facts):
        over = min(set(rules) - set(live), key=lambda rule: rule.expires)
        mark = Acknowledged(over.reason, over.expires.isoformat(), ended=True)
    else:
        return result
    return replace(result, outcome=replace(finding, acknowledged=mark))


def _reasons(rules: Sequence[Acknowledgement]) -> str:
    return "; ".join(dict.fromkeys(rule.reason for rule in rules))


def _covers(rules: Sequence[Acknowledgement], finding: Finding, facts: HostFacts | None) -> bool:
    """Whether all that a finding is about was named, or one rule says that it does not matter what."""
    if any(rule.entity is None for rule in rules):
        return True
    named = {_plain(rule.entity, facts) for rule in rules if rule.entity}
    return bool(finding.entities) and all(named & set(_names(entity, facts)) for entity in finding.entities)


def _names(entity: Entity, facts: HostFacts | None) -> Iterator[str]:
    """What a rule may call it: a GPU has its address and its UUID, a line of a file is in that file."""
    yield _plain(entity.name, facts)
    if entity.kind is EntityKind.FILE and entity.line is not None:
        yield f"{entity.name}:{entity.line}"


def _plain(name: str, facts: HostFacts | None) -> str:
    """A GPU's PCI address for its UUID; other names as they are, since paths and units differ by case."""
    smi = facts.driver.smi if facts else None
    found = next((gpu for gpu in (smi.gpus if smi else ()) if gpu.uuid == name), None)
    return (found.pci_address or name) if found else name


def _why(result: CheckResult | None) -> str:
    match result.outcome if result else None:
        case Finding() as finding:
            about = ", ".join(entity.name for entity in finding.entities[:4])
            return f"the finding is about {about}" if about else "the finding names no entity"
        case NotApplicable(reason):
            return f"no verdict: {reason}"
    return "the check passes" if result else "there is no such check"
