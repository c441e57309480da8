"""What changes of a node's labels: those that its facts give it and it lacks, and gpunode's own that no longer hold.

A label that somebody else set stays as it is. What the facts cannot say just now is not taken for wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from gpunode.catalog.node_labels import node_may_change
from gpunode.kubernetes.labels import ALPHA_NAME, NodeLabels
from gpunode.model.versions import Release
from gpunode.values import dataclass


class LabelChange(NamedTuple):
    name: str
    before: str | None  # None: it is not there
    after: str | None  # None: it is taken away


@dataclass(frozen=True)
class LabelChanges:
    changes: tuple[LabelChange, ...]  # by name
    same: int  # labels that have their value already
    left: Mapping[str, str]  # a name -> why it stays as it is, though the facts say otherwise or nothing
    ours: Mapping[str, str]  # labels that gpunode has set, these changes among them


def is_ours(name: str) -> bool:
    """Whether gpunode may have set it: no other name is ever taken away."""
    return name.startswith("nvidia.com/") or name == ALPHA_NAME


def refused_to_nodes(names: Collection[str], server: Release | None) -> dict[str, str]:
    """Of these, what NodeRestriction refuses to a node's own identity, and why."""
    why = "NodeRestriction refuses it to the node's own identity; an administrator may set it"
    return {name: why for name in names if not node_may_change(name, server)}


def label_changes(
    have: Mapping[str, str], set_before: Mapping[str, str], found: NodeLabels, refused: Mapping[str, str]
) -> LabelChanges:
    """`have`: the node's labels. `set_before`: by gpunode, with their values. `refused`: not to be changed, and why."""
    mine = {name: value for name, value in set_before.items() if have.get(name) == value}
    changes: list[LabelChange] = []
    left: dict[str, str] = {}
    for name in sorted({*found.values, *mine}):
        before, after = have.get(name), found.values.get(name)
        if before == after:
            continue
        if name in refused:
            left[name] = refused[name]
        elif after is None and found.values and (why := found.why_unknown(name)):  # without any GPU nothing is unknown
            left[name] = f"not known now: {why}"
        elif before is not None and name not in mine:
            left[name] = f"somebody else set it to {before[:80]!r}; the facts say {after!r}"
        else:
            changes.append(LabelChange(name, before, after))
    gone = {one.name for one in changes if one.after is None}
    ours = {name: value for name, value in mine.items() if name not in gone}
    ours |= {one.name: one.after for one in changes if one.after is not None}
    same = sum(have.get(name) == value for name, value in found.values.items())
    return LabelChanges(tuple(changes), same, left, dict(sorted(ours.items())))
