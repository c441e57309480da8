"""A lock: what one good node has, to be set up on others (setup --lock) and to be compared with (check --against)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.model.expectation import LISTS
from gpunode.model.rules import MOST
from gpunode.model.spec import Expectation
from gpunode.specfile.document import root_of, text_of
from gpunode.specfile.file import spec_of
from gpunode.specfile.keys import KEYS
from gpunode.specfile.snapshot import EXPECTED, known_entries, parse_expectation
from gpunode.values import dataclass

SCHEMA = "gpunode.lock/1"
# What a lock may ask setup for. Whom a host trusts, where it fetches from and what may be stopped is not among it: a
# lock can come from anybody.
SETUP = (
    "driver",
    "flavour",
    "driver_source",
    "toolkit",
    "runtime",
    "default",
    "cdi",
    "handler",
    "hold",
    "mig",
    "toolkit_config.mode",
)
_HAD = ("driver", "flavour", "toolkit")  # a node has some; a file of anybody's that removes one is no lock
_MADE = ("made_by", "made_at")
_PARTS = ("setup", "expect")
_KNOWN = ("schema", *_MADE, *(f"setup.{key}" for key in SETUP), *(key for key in EXPECTED if key.startswith("expect.")))


@dataclass(frozen=True)
class Lock:
    setup: Mapping[str, str]  # keys of a spec with their texts, of SETUP alone
    expect: Expectation
    expected: Mapping[str, str]  # the same as its texts, by key: {"kernel": "6.1.0-50-amd64"}


def load_lock(path: Path, flag: str = "--lock") -> Lock:
    """The lock in a file, YAML or JSON. Raises UsageError that lists every fault with its line."""
    return parse_lock(text_of(path, "lock", flag), str(path))


def load_expectation(path: Path) -> Expectation:
    """What a lock or a snapshot says that a node has. Raises UsageError that lists every fault with its line."""
    text = text_of(path, "snapshot or lock", "--against")
    root = root_of(text, str(path))
    keys = [getattr(key, "value", None) for key, _ in root.value] if root else []
    return parse_lock(text, str(path)).expect if "schema" in keys else parse_expectation(text, str(path))


def parse_lock(text: str, name: str = "lock") -> Lock:
    """The same of its text; `name` is what messages call it."""
    faults = list[str]()
    entries = known_entries(root_of(text, name), _PARTS, _KNOWN, "lock", faults)
    schema = entries.pop("schema", None)
    if schema is None:
        faults.append("schema is not there: gpunode lock writes it")
    elif schema.text != SCHEMA:
        faults.append(f"line {schema.line}: schema {(schema.text or '')[:80]!r} is not {SCHEMA}")
    for key in _MADE:
        entries.pop(key, None)
    parts = {part: [entry for key, entry in entries.items() if key.startswith(f"{part}.")] for part in _PARTS}
    spec = spec_of(parts["expect"], faults)
    wanted = [replace(entry, key=entry.key.removeprefix("setup.")) for entry in parts["setup"]]
    spec_of(wanted, faults)
    faults += [
        f"line {entry.line}: {entry.key}: {entry.text!r} is not what a node has"
        for entry in wanted
        if entry.key in _HAD and (entry.text or "").strip().lower() in ("auto", "none")
    ]
    if not entries and not faults:
        faults.append("there is nothing in it")
    if faults:
        raise UsageError(f"{name} is not a lock", evidence="\n".join(faults[:MOST]))
    expected = {entry.key.removeprefix("expect."): entry.text or "" for entry in parts["expect"]}
    return Lock({entry.key: entry.text or "" for entry in wanted}, spec.expect, expected)


def lock_of(
    setup: Mapping[str, str], expect: Mapping[str, str], made_by: str, made_at: str
) -> tuple[dict[str, object], tuple[str, ...]]:
    """(a lock as data, the keys whose value is of a form that it could not hold). `made_at`: ISO 8601."""
    odd: list[str] = []
    data: dict[str, object] = {"schema": SCHEMA, "made_by": made_by, "made_at": made_at}
    for part, texts, prefix in (("setup", setup, ""), ("expect", expect, "expect.")):
        data[part] = values = dict[str, object]()
        for key, text in texts.items():
            try:
                KEYS[f"{prefix}{key}"].parse(text)
            except UsageError:
                odd.append(f"{part}.{key}")
            else:
                values[key] = text.split(",") if prefix and key in LISTS else text
    return data, tuple(odd)


def lock_text(data: Mapping[str, object]) -> str:
    """A lock's data as YAML. Every value is quoted: to YAML 580.10 is a number."""
    lines: list[str] = []
    for key, value in data.items():
        if isinstance(value, Mapping):
            lines += [f"{key}:" if value else f"{key}: {{}}", *_nested(value)]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _nested(values: Mapping[str, object]) -> list[str]:
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, list) and len(value) > 1:
            lines += [f"  {key}:", *(f"    - {json.dumps(one)}" for one in value)]
        else:
            lines.append(f"  {key}: {json.dumps(value[0] if isinstance(value, list) else value)}")
    return lines
