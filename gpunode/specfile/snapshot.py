"""What a node has, as a file that others are compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.model.rules import MOST
from gpunode.model.spec import Expectation
from gpunode.specfile.document import Entry, pairs, root_of, text_of
from gpunode.specfile.file import spec_of
from gpunode.specfile.keys import KEYS, NESTED

SNAPSHOT, FORM = "gpunode_expectation", "1"  # what makes a file a snapshot, and the form that this gpunode reads
EXPECTED = (SNAPSHOT, "taken", *(key for key in KEYS if key.startswith("expect.")))


def load_expectation(path: Path) -> Expectation:
    """What a snapshot says (`expectation_text`). Raises UsageError that lists every fault with its line."""
    return parse_expectation(text_of(path, "snapshot", "--against"), str(path))


def parse_expectation(text: str, name: str = "snapshot") -> Expectation:
    """The same of its text; `name` is what messages call it."""
    root, faults, entries = root_of(text, name), list[str](), dict[str, Entry]()
    for entry in pairs(root, NESTED) if root else ():
        if entry.key not in EXPECTED:
            known = f"{meant(entry.key[:80], EXPECTED)}the keys are {', '.join(EXPECTED)}"
            faults.append(f"line {entry.line}: {entry.key[:80]} is not a key of a snapshot; {known}")
        elif entry.key in entries:
            faults.append(
                f"line {entry.line}: {entry.key} is there twice; the first is on line {entries[entry.key].line}"
            )
        else:
            entries[entry.key] = entry
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
