"""Part of a spec, as texts by key: what lies under --spec. An inventory has them, for its groups and hosts."""

from __future__ import annotations

from pathlib import Path

from gpunode.errors import UsageError
from gpunode.specfile.document import Entry, pairs, root_of, text_of
from gpunode.specfile.file import spec_of
from gpunode.specfile.keys import NESTED
from gpunode.specfile.rules import RULES

# One run judges all hosts by the same rules and checks.
_OF_ALL = (*RULES, "site_checks")


def layer_of(mapping: object, faults: list[str]) -> dict[str, str]:
    """The keys of a YAML mapping; what is wrong goes to `faults`, with its line. Raises UsageError for no mapping."""
    import yaml

    if not isinstance(mapping, yaml.MappingNode):
        raise UsageError("a spec is a mapping, or the name of a file")
    entries: list[Entry] = []
    for entry in pairs(mapping, NESTED):
        if entry.key in _OF_ALL:
            faults.append(f"line {entry.line}: {entry.key} is for all hosts of a run, and stands in --spec")
        else:
            entries.append(entry)
    before = len(faults)
    spec_of(entries, faults)
    return {} if len(faults) > before else {entry.key: entry.text or "" for entry in entries}


def layer_in_file(path: Path) -> dict[str, str]:
    """The same of a spec file. Raises UsageError with every fault."""
    root, faults = root_of(text_of(path, "spec", "spec"), str(path)), list[str]()
    layer = layer_of(root, faults) if root else {}
    if faults:
        raise UsageError(f"{path} is wrong", evidence="; ".join(faults), remedy=f"correct {path}; nothing was touched")
    return layer
