"""A YAML check of the site: read strictly, every fault with its line, and judged on the facts. Nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpunode.advice import listing, meant
from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_yaml, whole_number
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction
from gpunode.site_checks.comparisons import COMPARISONS, LONGEST_GLOB, MOST_STARS, NUMBER, Comparison, version_numbers
from gpunode.site_checks.facts_path import FactsPath, Found, Schema
from gpunode.values import dataclass

if TYPE_CHECKING:
    import yaml

GROUP = "site"
NAME = r"[a-z0-9][a-z0-9-]{0,62}"
LONGEST_TEXT = 1000  # characters of one value of the file
_MOST_VALUES = 100
_SHOWN, _SHOWN_TEXT = 4, 120  # values in the evidence, and characters of each
_BRACES = regex(r"\{([^{}]*)\}|[{}]")
_DEFAULT_EVIDENCE = "{values}; wanted: {wanted}"
PLACEHOLDERS = ("host", "path", "values", "wanted", "count")


@dataclass(frozen=True)
class WrittenCheck:
    """One YAML file."""

    id: str  # "site.gpu-memory"
    title: str  # what a pass proves
    broken: str  # what is wrong where it does not pass; a template as `evidence`
    path: FactsPath
    comparison: str  # a key of COMPARISONS
    value: Any  # what is wanted; None where the comparison needs none
    severity: Severity
    remedy: Remedy
    file: str
    evidence: str = _DEFAULT_EVIDENCE

    @property
    def reads(self) -> str:
        return f"{self.path.text} of the facts: {self.wanted}"

    @property
    def wanted(self) -> str:
        """ "at-least 8"."""
        values = self.value if isinstance(self.value, tuple) else () if self.value is None else (self.value,)
        return " ".join([self.comparison, ", ".join(map(_shown, values))]).rstrip()

    def judge(self, facts: Mapping[str, Any]) -> CheckOutcome:
        """The verdict on published facts (`detect --json`). What is not known is never a pass."""
        found = self.path.look(facts)
        wrong, why = _JUDGES[COMPARISONS[self.comparison].of](self, found, facts)
        if why is None:
            return None
        if not wrong:
            return NotApplicable(why)
        words = {
            "host": str(facts.get("hostname", "")),
            "path": self.path.text,
            "values": listing(map(_as_found, wrong), _SHOWN),
            "wanted": self.wanted,
            "count": str(len(wrong)),
        }
        return Finding(_filled(self.broken, words), evidence=_filled(self.evidence, words), remedy=self.remedy)


Judged = tuple[Sequence[Found], str | None]  # what is wrong, and why there is no pass: None means that it passes


def _each(check: WrittenCheck, found: Sequence[Found], facts: Mapping[str, Any]) -> Judged:
    if not found:
        return (), f"the host has no {check.path.text}"
    verdicts = [(one, _tested(check, one.value)) for one in found]
    if wrong := [one for one, verdict in verdicts if verdict is False]:
        return wrong, ""
    unknown = [one for one, verdict in verdicts if verdict is None]
    return (), _unknown(unknown) if unknown else None


def _list(check: WrittenCheck, found: Sequence[Found], facts: Mapping[str, Any]) -> Judged:
    """A list that is empty because nobody could read it lacks nothing for sure."""
    if any(one.value == [] for one in found) and (unread := _unread(facts)):
        return (), f"unknown: {check.path.text} is empty, and {unread}"
    return _each(check, found, facts)


def _all(check: WrittenCheck, found: Sequence[Found], facts: Mapping[str, Any]) -> Judged:
    if len(found) < 2:
        return (), f"the host has {'one' if found else 'no'} {check.path.text}: nothing to compare"
    if unknown := [one for one in found if one.value is None]:
        return (), _unknown(unknown)
    return ((), None) if COMPARISONS[check.comparison].test([one.value for one in found], None) else (found, "")


def _number(check: WrittenCheck, found: Sequence[Found], facts: Mapping[str, Any]) -> Judged:
    if unknown := [one for one in found if one.value is None]:
        return (), _unknown(unknown)
    if not found and (unread := _unread(facts)):
        return (), f"unknown: there is no {check.path.text}, and {unread}"
    right = COMPARISONS[check.comparison].test(len(found), check.value)
    return ((), None) if right else ((Found(f"the number of {check.path.text}", len(found)),), "")


_JUDGES: Mapping[str, Callable[[WrittenCheck, Sequence[Found], Mapping[str, Any]], Judged]] = {
    "each": _each,
    "list": _list,
    "all": _all,
    "number": _number,
}


def _tested(check: WrittenCheck, value: Any) -> bool | None:
    return None if value is None else COMPARISONS[check.comparison].test(value, check.value)


def _unknown(found: Sequence[Found]) -> str:
    return f"unknown: {listing((one.place for one in found), _SHOWN)}"


def _unread(facts: Mapping[str, Any]) -> str:
    return f"not all was read: {listing(facts['unread'], _SHOWN)}" if facts.get("unread") else ""


def _as_found(one: Found) -> str:
    return f"{one.place} = {_shown(one.value)}"


def _shown(value: Any) -> str:
    text = (
        str(value).lower()
        if isinstance(value, bool)
        else ", ".join(map(str, value[:8]))
        if isinstance(value, list)
        else str(value)
    )
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}…"


def _filled(template: str, words: Mapping[str, str]) -> str:
    return _BRACES.sub(lambda braces: words[braces[1]], template)


def parse_check(text: str, file: str, schema: Schema) -> WrittenCheck:
    """The check in a YAML file; `schema`: what facts are like. Raises UsageError whose evidence is all its faults."""
    return _Reader(file, _nodes(text, file)).check(schema)


REQUIRED = ("id", "title", "broken", "path", "comparison", "severity", "remedy", "action")
KEYS = (*REQUIRED, "value", "evidence")


def _nodes(text: str, file: str) -> list[tuple[Any, Any]]:
    import yaml

    try:
        root = read_yaml(text)
    except NotRead as fault:
        raise UsageError(file, evidence=f"{file}:{fault.line}: {fault.what}") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(file, evidence=f"{file}:1: a check is lines of `key: value`")
    return list(root.value)


class _Reader:
    """One file's keys; collects what is wrong with them."""

    def __init__(self, file: str, nodes: list[tuple[Any, Any]]) -> None:
        import yaml

        self.file = file
        self.faults: list[str] = []
        self.nodes: dict[str, yaml.Node] = {}
        self.lines: dict[str, int] = {}
        for key, node in nodes:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            line = key.start_mark.line + 1
            if name not in KEYS:
                self.fault(
                    line, f"{name[:60]} is not a key of a check", f"{meant(name, KEYS)}they are {', '.join(KEYS)}"
                )
            elif name in self.nodes:
                self.fault(line, f"{name} is there twice", f"the first is on line {self.lines[name]}")
            else:
                self.nodes[name], self.lines[name] = node, line

    def fault(self, line: int, what: str, evidence: str = "") -> None:
        self.faults.append(f"{self.file}:{line}: {what}{f'; {evidence}' if evidence else ''}")

    def check(self, schema: Schema) -> WrittenCheck:
        for name in REQUIRED:
            if name not in self.nodes:
                self.fault(1, f"{name} is missing")
        read = {
            "id": self.read("id", _id),
            "title": self.read("title", _plain),
            "broken": self.read("broken", _template),
            "evidence": self.read("evidence", _template) or _DEFAULT_EVIDENCE,
            "severity": self.read("severity", lambda text: _choice(text, {s.value: s for s in Severity})),
            "remedy": self.remedy(),
        }
        path = self.read("path", FactsPath.parse)
        kinds = self.read("path", lambda _: path.kinds(schema)) if path else frozenset[str]()
        name = self.read("comparison", lambda text: _choice(text, {name: name for name in COMPARISONS}))
        if kinds and name:
            self.read("comparison", lambda _: _fitting(COMPARISONS[name], path, kinds))
        value = self.value(COMPARISONS[name], path, schema) if name and kinds else None
        if self.faults:
            raise UsageError(self.file, evidence="\n".join(self.faults))
        return WrittenCheck(path=path, comparison=name, value=value, file=self.file, **read)

    def read(self, name: str, parse: Callable[[str], Any]) -> Any:
        """The key's text as `parse` takes it; None where it is not there or not right."""
        node = self.nodes.get(name)
        if node is None:
            return None
        try:
            return parse(_text(node))
        except UsageError as fault:
            self.fault(self.lines[name], f"{name}: {fault.problem}", fault.evidence)
            return None

    def remedy(self) -> Remedy:
        actions = {action.value: action for action in RepairAction}
        action = self.read("action", lambda text: _choice(text, actions))
        return Remedy(action or RepairAction.NONE, self.read("remedy", _plain) or "")

    def value(self, comparison: Comparison, path: FactsPath, schema: Schema) -> Any:
        node = self.nodes.get("value")
        if node is None or comparison.of == "all":
            if (node is None) != (comparison.of == "all"):
                self.fault(
                    self.lines.get("value", 1), "value is missing" if node is None else "value: `same` needs none"
                )
            return None
        try:
            return _wanted(node, comparison, path, schema)
        except UsageError as fault:
            self.fault(self.lines["value"], f"value: {fault.problem}", fault.evidence)
            return None


def _text(node: yaml.Node) -> str:
    import yaml

    if not isinstance(node, yaml.ScalarNode):
        raise UsageError("one value is wanted here, not a list or a mapping")
    if node.tag == "tag:yaml.org,2002:null" or not node.value.strip():
        raise UsageError("there is no value")
    if len(node.value) > LONGEST_TEXT:
        raise UsageError(f"it is over {LONGEST_TEXT} characters")
    return str(node.value).strip()


def _id(text: str) -> str:
    if re.fullmatch(rf"{GROUP}\.{NAME}", text):
        return text
    raise UsageError(
        f"{text[:80]!r} is not an id of a site's check",
        evidence=f"it is {GROUP}. and a name of small letters, digits and hyphens: {GROUP}.gpu-memory",
    )


def _plain(text: str) -> str:
    return " ".join(text.split())


def _template(text: str) -> str:
    for braces in _BRACES.finditer(text):
        if braces[1] not in PLACEHOLDERS:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise UsageError(f"{braces[0][:40]} stands for nothing", evidence=f"there are {known}")
    return _plain(text)


def _choice(text: str, values: Mapping[str, Any]) -> Any:
    if text in values:
        return values[text]
    raise UsageError(f"{text[:60]!r} is not a choice", evidence=f"{meant(text, values)}they are {', '.join(values)}")


def _fitting(comparison: Comparison, path: FactsPath, kinds: frozenset[str]) -> None:
    if comparison.of == "number" and not path.many:
        raise UsageError("it counts what a path with [*] or [KEY=TEXT] finds")
    if not kinds <= comparison.kinds:
        raise UsageError(f"{path.text} is {_named(kinds)}, and it is for {_named(comparison.kinds)}")


def _named(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))


def _wanted(node: yaml.Node, comparison: Comparison, path: FactsPath, schema: Schema) -> Any:
    import yaml

    if comparison.of == "number":
        return _number_of(_text(node), frozenset({"integer"}))
    if comparison.of == "list":
        path = FactsPath(path.text, (*path.steps, ("each", "", "")))
    kinds = path.kinds(schema)
    if not comparison.many:
        return _one(node, comparison, kinds)
    if not isinstance(node, yaml.SequenceNode) or not 0 < len(node.value) <= _MOST_VALUES:
        raise UsageError(f"a list of 1 to {_MOST_VALUES} values is wanted here")
    return tuple(_one(inner, comparison, kinds) for inner in node.value)


def _one(node: yaml.Node, comparison: Comparison, kinds: frozenset[str]) -> Any:
    """What is wanted, in the type that the facts have."""
    text = _text(node)
    if comparison.versions and version_numbers(text) is None:
        raise UsageError(f"{text[:60]!r} is not a version")
    if comparison.glob and (len(text) > LONGEST_GLOB or text.count("*") > MOST_STARS):
        raise UsageError(f"a pattern has at most {LONGEST_GLOB} characters and {MOST_STARS} times *")
    if kinds <= NUMBER:
        return _number_of(text, kinds)
    if kinds == {"boolean"}:
        return _choice(text, {"true": True, "false": False})
    return text


def _number_of(text: str, kinds: frozenset[str]) -> int | float:
    whole = whole_number(text)
    if whole is not None:
        return whole
    if "number" in kinds and re.fullmatch(r"-?[0-9]{1,18}\.[0-9]{1,18}", text):
        return float(text)
    raise UsageError(f"{text[:60]!r} is not {'a number' if 'number' in kinds else 'a whole number'}")
