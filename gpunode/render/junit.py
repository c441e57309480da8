"""Checks as JUnit XML, for whatever shows test reports: a suite for each host, a case for each check.

The attributes and elements are those that Jenkins, GitLab and GitHub's actions have in common (the rules are in
tests/render/junit_rules.py). JUnit knows no warning: one is a case that passes and says so, or with --strict a failure.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gpunode.model.layers import group_of
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable
from gpunode.render.check_values import host_name, line, lines, own_words, standing


def junit_xml(outcomes: Sequence[HostOutcome], *, seconds_s: float, at_s: float, strict: bool) -> str:
    """One document. `at_s`: when the checks ended, in seconds since the epoch."""
    root = Element("testsuites", name="gpunode")
    timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))  # UTC; JUnit's has no time zone
    for outcome in outcomes:
        name = host_name(outcome)
        suite = SubElement(root, "testsuite", name=name, hostname=name, timestamp=timestamp)
        if outcome.check is None:
            _unread(suite, outcome)
        else:
            _cases(suite, outcome.check, strict)
        _count(suite, ("tests", "failures", "errors", "skipped"))
    _count(root, ("tests", "failures", "errors"))
    root.set("time", f"{seconds_s:.3f}")
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


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
    severity = standing(result)
    details = _details(finding.evidence, finding.remedy.text, result.foreign or "")
    details = "\n".join(filter(None, (details, _words(finding))))
    if severity == "error" or strict:
        SubElement(case, "failure", message=line(finding.summary), type=severity).text = details
    else:
        SubElement(case, "system-out").text = f"{severity}: {line(finding.summary)}\n{details}"


def _words(finding: Finding) -> str:
    return "\n".join(f"{label}: {lines(text)}" for label, text in own_words(finding))


def _details(evidence: str, remedy: str, foreign: str = "") -> str:
    rows = (("evidence", evidence), ("remedy", remedy), ("check of this site", foreign))
    return "\n".join(f"{label}: {lines(text)}" for label, text in rows if text)
