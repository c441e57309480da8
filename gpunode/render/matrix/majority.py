"""What most hosts of a group have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

UNKNOWN = -1  # the place of a value that is not known, and of a host that is in no group


class Most(NamedTuple):
    value: int  # the place of the value that more hosts have than any other; UNKNOWN: two have as many
    having: int  # hosts that have it
    known: int  # hosts of which the value is known


def most(values: Iterable[int]) -> Most:
    """As fleet.version-uniform counts: the most frequent, which need not be that of half the hosts."""
    found = Counter(value for value in values if value != UNKNOWN)
    ranked = found.most_common(2)
    if not ranked:
        return Most(UNKNOWN, 0, 0)
    (value, number), *others = ranked
    if others and others[0][1] == number:
        return Most(UNKNOWN, number, found.total())
    return Most(value, number, found.total())


def by_group(groups: Sequence[int], rows: Sequence[Sequence[int]]) -> list[list[Most]]:
    """Group -> column -> what most of its hosts have. `groups`: the group of each row; `rows`: host -> column."""
    members: dict[int, list[Sequence[int]]] = {}
    for group, row in zip(groups, rows, strict=True):
        if group != UNKNOWN:
            members.setdefault(group, []).append(row)
    return [[most(column) for column in zip(*members[group], strict=True)] for group in sorted(members)]
