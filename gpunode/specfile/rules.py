"""How a check weighs what it finds: keys of a spec that nothing but a check reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gpunode.errors import UsageError
from gpunode.model.rules import MOST, Acknowledgement, Rules, Weight, parse_acknowledgement, parse_weight
from gpunode.specfile.document import Entry, texts_of


def _profile(entry: Entry) -> str:
    if entry.shape != "scalar" or not entry.text:
        raise UsageError("the name of a profile is wanted here")
    return entry.text.strip()


def _severity(entry: Entry) -> tuple[tuple[str, Weight], ...]:
    pairs = texts_of(entry.node, "CHECK: error or CHECK: warning")
    return tuple((id, parse_weight(id, text)) for id, text in _bounded(list(pairs.items())))


def _acknowledge(entry: Entry) -> tuple[Acknowledgement, ...]:
    import yaml

    if not isinstance(entry.node, yaml.SequenceNode):
        raise UsageError("a list is wanted here, each with id, reason and expires")
    form = "id, reason and expires"
    return tuple(parse_acknowledgement(texts_of(one, form)) for one in _bounded(entry.node.value))


def _bounded(values: list[Any]) -> list[Any]:
    if len(values) > MOST:
        raise UsageError(f"there are {len(values)} of them; at most {MOST} are read")
    return values


def rules_text(rules: Rules) -> str:
    """Rules as a file that `parse_file` reads back to the same; "" for those that change nothing."""
    accepted = [
        {"id": one.id, "reason": one.reason, "expires": one.expires.isoformat()}
        | ({"entity": one.entity} if one.entity else {})
        for one in rules.acknowledge
    ]
    found = {"profile": rules.profile, "severity": dict(rules.severity), "acknowledge": accepted}
    said = {key: value for key, value in found.items() if value != getattr(Rules(), key) and value}
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in said.items())


RULES: dict[str, Callable[[Entry], Any]] = {
    "profile": _profile,
    "severity": _severity,
    "acknowledge": _acknowledge,
}
