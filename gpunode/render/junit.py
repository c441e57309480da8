"""Checks as JUnit XML, for whatever shows test reports: a suite for each host, a case for each check.

The attributes and elements are those that Jenkins, GitLab and GitHub's actions have in common (the rules are in
tests/render/junit_rules.py). JUnit knows no warning: one is a case that passes and says so, or with --strict a failure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gpunode.model.layers import group_of
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable
from gpunode.render.check_values import host_name, line, lines, own_words, standing


def junit_xml(outcomes: Sequence[HostOutcome], *, seconds_s: float, at_s: float, strict: bool) -> Iterator[str]:
    """One document, host by host. `at_s`: when the checks ended, in seconds since the epoch."""
    timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))  # UTC; JUnit's has no time zone
    numbers = {name: str(sum(_number(name, outcome, strict) for outcome in outcomes)) for name in _OF_ALL}
    root = Element("testsuites", {"name": "gpunode", **numbers, "time": f"{seconds_s:.3f}"})
    alone = tostring(root, encoding="unicode")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    if not outcomes:
        yield f"{head}{alone}\n"
        return
    yield f"{head}{alone.removesuffix(' />')}>"
    for outcome in outcomes:
        suite = _suite(outcome, timestamp, strict)
        indent(suite, level=1)
        yield f"\n  {tostring(suite, encoding='unicode')}"
    yield f"\n</{root.tag}>\n"


def _suite(outcome: HostOutcome, timestamp: str, strict: bool) -> Element:
    name = host_name(outcome)
    suite = Element("testsuite", name=name, hostname=name, timestamp=timestamp)
    if outcome.check is None:
        _unread(suite, outcome)
    else:
        _cases(suite, outcome.check, strict)
    _count(suite, ("tests", "failures", "errors", "skipped"))
    return suite


_OF_ALL = ("tests", "failures", "errors")
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def _number(name: str, outcome: HostOutcome, strict: bool) -> int:
    """What `_count` will find in a host's suite: the document begins with the sums, and holds no suite for them."""
    if outcome.check is None:
        return int(name != "failures")
    results = outcome.check.results.values()
    counted = {"tests": len(results), "failures": sum(map(partial(_fails, strict=strict), results))}
    return counted.get(name, 0)


def _fails(result: CheckResult, *, strict: bool) -> bool:
    how = standing(result)
    return how == "error" or (strict and how == "warning")


def _count(element: Element, names: Sequence[str]) -> None:
    for name in names:
        element.set(name, str(sum(1 for _ in element.iter(_COUNTED[name]))))


def _unread(suite: Element, outcome: HostOutcome) -> None:
    """A host without a report is an error, not an empty suite that looks well; of the check that it fails, if any."""
    group = f".{group_of(outcome.check_id)}" if outcome.check_id else ""
    case = SubElement(suite, "testcase", classname=f"gpunode{group}", name=outcome.check_id or "report")
    error = SubElement(case, "error", message=line(outcome.problem), type=f"exit-code-{int(outcome.code)}")
    error.text = _details(outcome.evidence, outcome.remedy.text)


def _cases(suite: Element, report: CheckReport, strict: bool) -> None:
    for result in report.results.values():
        case = SubElement(suite, "testcase", classname=f"gpunode.{group_of(result.id)}", name=line(result.id))
        match result.outcome:
            case None if result.evidence:
                SubElement(case, "system-out").text = _details(result.evidence, "")
            case NotApplicable(reason):
                SubElement(case, "skipped", message=line(reason))
            case Finding(accepted=True) as finding:
                SubElement(case, "skipped", message=line(f"acknowledged {_words(finding)}; {finding.summary}"))
            case Finding() as finding:
                _found(case, result, finding, strict)


def _found(case: Element, result: CheckResult, finding: Finding, strict: bool) -> None:
    details = _details(finding.evidence, finding.remedy.text, result.foreign or "")
    details = "\n".join(filter(None, (details, _words(finding))))
    if _fails(result, strict=strict):
        SubElement(case, "failure", message=line(finding.summary), type=standing(result)).text = details
    else:
        SubElement(case, "system-out").text = f"{standing(result)}: {line(finding.summary)}\n{details}"


def _words(finding: Finding) -> str:
    return "\n".join(f"{label}: {lines(text)}" for label, text in own_words(finding))


def _details(evidence: str, remedy: str, foreign: str = "") -> str:
    rows = (("evidence", evidence), ("remedy", remedy), ("check of this site", foreign))
    return "\n".join(f"{label}: {lines(text)}" for label, text in rows if text)
