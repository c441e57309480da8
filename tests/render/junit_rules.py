"""What a JUnit file may hold, as rules: the part that Jenkins' junit-10.xsd, GitLab and Ant's schema have in common.

Element -> (attributes it must have, further ones it may have, children in any order). Numbers are whole, `time` is
seconds, `timestamp` is a date and time without a zone. `testsuite` counts what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element, fromstring


class Rule(NamedTuple):
    must: frozenset[str]
    may: frozenset[str]
    children: frozenset[str]
    text: bool = False


def _rule(must: str, may: str = "", children: str = "", *, text: bool = False) -> Rule:
    return Rule(frozenset(must.split()), frozenset(may.split()), frozenset(children.split()), text)


RULES = {
    "testsuites": _rule("name tests failures errors", "time disabled", "testsuite"),
    "testsuite": _rule(
        "name tests failures errors skipped", "time hostname timestamp id package", "testcase properties system-out"
    ),
    "testcase": _rule("name classname", "time assertions status", "skipped error failure system-out system-err"),
    "failure": _rule("type", "message", text=True),
    "error": _rule("type", "message", text=True),
    "skipped": _rule("", "message", text=True),
    "system-out": _rule("", text=True),
}
_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
_ONE_OF = {"skipped", "error", "failure"}  # how a case ended: at most one of them


def read_junit(text: str) -> Element:
    """The root. Raises AssertionError or ParseError with the first place that is against the rules."""
    root = fromstring(text.encode("utf-8"))
    assert root.tag == "testsuites"
    for fault in _faults(root):
        raise AssertionError(fault)
    return root


def _faults(element: Element) -> Iterator[str]:
    rule = RULES[element.tag]
    if missing := rule.must - set(element.keys()):
        yield f"{element.tag}: no {missing}"
    if unknown := set(element.keys()) - rule.must - rule.may:
        yield f"{element.tag}: {unknown} is none of its attributes"
    if not rule.text and (element.text or "").strip():
        yield f"{element.tag} holds text"
    if len([child for child in element if child.tag in _ONE_OF]) > 1:
        yield f"{element.tag} ended in two ways"
    yield from _values(element)
    for child in element:
        if child.tag not in rule.children:
            yield f"{child.tag} in {element.tag}"
        if (child.tail or "").strip():
            yield f"text after {child.tag}"
        yield from _faults(child)


def _values(element: Element) -> Iterator[str]:
    for name, of in _COUNTS.items():
        if element.get(name) is not None and element.get(name) != str(sum(1 for _ in element.iter(of))):
            yield f"{element.tag}: {name} is {element.get(name)}"
    if not re.fullmatch(r"\d+(\.\d+)?", element.get("time", "0")):
        yield f"time is {element.get('time')}"
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.get("timestamp", "2026-01-01T00:00:00")):
        yield f"timestamp is {element.get('timestamp')}"
