"""YAML -> Spec and back. Every fault in a file is reported together, with its line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpunode.errors import UsageError
from gpunode.model.rules import Rules
from gpunode.model.spec import Spec, ToolkitRequest
from gpunode.specfile.document import Entry, pairs, root_of, text_of
from gpunode.specfile.keys import KEYS, NESTED, put
from gpunode.specfile.rules import RULES
from gpunode.values import dataclass

if TYPE_CHECKING:
    import yaml


@dataclass(frozen=True)
class SpecFile:
    """A spec file: what is wanted of a host, and how a check weighs what it finds."""

    spec: Spec
    rules: Rules
    keys: frozenset[str] = frozenset()  # of the spec, that it says something of


def load_spec(path: Path) -> Spec:
    """The spec in a YAML file. Raises UsageError that lists every fault with its line and what is allowed."""
    return load_file(path).spec


def load_file(path: Path, under: Spec | None = None) -> SpecFile:
    """The same over another spec, with what only a check reads."""
    return parse_file(text_of(path, "spec", "--spec"), str(path), under)


def parse_spec(text: str, name: str = "spec") -> Spec:
    """A spec's text as a Spec; `name` is what messages call it."""
    return parse_file(text, name).spec


def parse_file(text: str, name: str = "spec", under: Spec | None = None) -> SpecFile:
    """The same over another spec, with what only a check reads. All faults of both are in one UsageError."""
    faults: list[str] = []
    root = root_of(text, name)
    rules, others = _rules(root, faults)
    spec = spec_of(others, faults, under)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UsageError(f"{name}: {count}", evidence="\n".join(faults), remedy=f"correct {name}; nothing was touched")
    return SpecFile(spec, rules, frozenset(entry.key for entry in others))


def spec_of(entries: Iterable[Entry], faults: list[str], under: Spec | None = None) -> Spec:
    """What these say over `under`; what is wrong goes to `faults`, with its line."""
    spec, seen = under or Spec(), dict[str, int]()
    for entry in entries:
        try:
            if entry.key in seen:
                raise UsageError(f"{entry.key} is there twice; the first is on line {seen[entry.key]}")
            seen[entry.key] = entry.line
            spec = put(spec, entry.key, _value(entry))
        except UsageError as fault:
            faults.append(f"line {entry.line}: {_words(entry.key, fault)}")
    return spec


def _rules(root: yaml.MappingNode | None, faults: list[str]) -> tuple[Rules, list[Entry]]:
    """What only a check reads, and the entries of everything else, in their order."""
    rules, others = dict[str, Any](), []
    for entry in pairs(root, NESTED) if root else ():
        if entry.key not in RULES:
            others.append(entry)
            continue
        try:
            if entry.key in rules:
                raise UsageError(f"{entry.key} is there twice")
            rules[entry.key] = RULES[entry.key](entry)
        except UsageError as fault:
            faults.append(f"line {entry.line}: {_words(entry.key, fault)}")
    return Rules(**rules), others


def _words(key: str, fault: UsageError) -> str:
    flag = KEYS[key].flag if key in KEYS else ""
    problem = fault.problem.removeprefix(f"{flag} ") if flag else fault.problem
    said = problem if problem.startswith(key) else f"{key}: {problem}"
    return f"{said}; {fault.evidence}" if fault.evidence else said


def _value(entry: Entry) -> str:
    known = KEYS.get(entry.key)
    if known is None:
        return ""
    if entry.shape == "list" and not known.many:
        raise UsageError("one value is wanted here, not a list")
    if entry.shape == "mapping":
        raise UsageError("one value is wanted here, not a mapping")
    if entry.text is None:
        raise UsageError("there is no value", evidence="leave the key out to keep gpunode's choice")
    return entry.text


def spec_text(spec: Spec) -> str:
    """A spec as a file that `load_spec` reads back to the same Spec. It may hold a proxy's password: write it 0600."""
    found: dict[str, object] = {}
    for key, text in key_texts(spec).items():
        parent, dot, child = key.partition(".")
        under = found.setdefault(parent, {}) if dot else found
        assert isinstance(under, dict)
        under[child or parent] = text
    return "".join(f"{key}: {_flow(value)}\n" for key, value in found.items())


def key_texts(spec: Spec) -> dict[str, str]:
    """{"driver": "580"}: the keys of which it wants something, with what `put` reads back. A proxy has its password."""
    found = {}
    for key, known in KEYS.items():
        outer, _, inner = known.field.partition(".")
        value = getattr(getattr(spec, outer), inner) if inner else getattr(spec, outer)
        if value != _default(outer, inner):
            found[key] = _text(value)
    return found


def _default(outer: str, inner: str) -> object:
    return getattr(getattr(Spec(), outer), inner) if inner else getattr(Spec(), outer)


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {json.dumps(one)}' for key, one in value.items())}}}"
    return json.dumps(value)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"  # no engine at all; the other lists are never empty when they differ
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, ToolkitRequest):
        return value.version or value.kind
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) or "off"  # a log that is switched off; no other text is ever empty
