"""What a node has, as a file that others are compared with."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.model.rules import MOST
from gpunode.model.spec import Expectation
from gpunode.specfile.document import Entry, pairs, root_of
from gpunode.specfile.file import spec_of
from gpunode.specfile.keys import KEYS, NESTED

if TYPE_CHECKING:
    import yaml

SNAPSHOT, FORM = "gpunode_expectation", "1"  # what makes a file a snapshot, and the form that this gpunode reads
EXPECTED = (SNAPSHOT, "taken", *(key for key in KEYS if key.startswith("expect.")))


def parse_expectation(text: str, name: str = "snapshot") -> Expectation:
    """What a snapshot says (`expectation_text`); `name` is what messages call it.

    Raises UsageError that lists every fault with its line.
    """
    faults = list[str]()
    entries = known_entries(root_of(text, name), NESTED, EXPECTED, "snapshot", faults)
    if form := entries.pop(SNAPSHOT, None):
        faults += [] if form.text == FORM else [f"line {form.line}: {SNAPSHOT} {form.text!r:.80} is not {FORM}"]
    else:
        faults.append(f"{SNAPSHOT} is not there: --snapshot writes it, and an expect of a spec needs no --against")
    entries.pop("taken", None)
    spec = spec_of(entries.values(), faults)
    if not entries and not faults:
        faults.append("it expects nothing")  # every node would be as it says
    if faults:
        evidence = "\n".join(faults[:MOST])
        raise UsageError(f"{name} is not a snapshot that a node can be compared with", evidence=evidence)
    return spec.expect


def known_entries(
    root: yaml.MappingNode | None, nested: Collection[str], known: Collection[str], what: str, faults: list[str]
) -> dict[str, Entry]:
    """The keys of a file that has no others; one that is not known, or there twice, goes to `faults`."""
    entries: dict[str, Entry] = {}
    for entry in pairs(root, nested) if root else ():
        if entry.key not in known:
            said = f"{meant(entry.key[:80], known)}the keys are {', '.join(known)}"
            faults.append(f"line {entry.line}: {entry.key[:80]} is not a key of a {what}; {said}")
        elif entry.key in entries:
            faults.append(
                f"line {entry.line}: {entry.key} is there twice; the first is on line {entries[entry.key].line}"
            )
        else:
            entries[entry.key] = entry
    return entries


def expectation_text(found: Mapping[str, str], taken: str) -> tuple[str, tuple[str, ...]]:
    """(a snapshot's text, the keys whose value is of a form that it could not hold). `taken`: the day."""
    lines, odd = [], []
    for key, text in found.items():
        try:
            KEYS[f"expect.{key}"].parse(text)
        except UsageError:
            odd.append(key)
        else:
            lines.append(f"  {key}: {json.dumps(text)}\n")
    return f"{SNAPSHOT}: {FORM}\ntaken: {json.dumps(taken)}\nexpect:\n{''.join(lines)}", tuple(odd)
