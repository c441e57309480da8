"""Feature gates that keep a kubelet from starting, or from offering GPUs, as catalog/feature_gates.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import Release, release


class Refusal(NamedTuple):
    """From which release on a kubelet does not start with a gate or flag."""

    since: Release
    why: str  # "is not known from 1.28 on"
    source: str
    early: bool = False  # by its release and all before it: it does not know the gate yet


def known_from(gate: str) -> Release | None:
    """(1, 28): the first release whose kubelet knows this gate; None: it is not in the table."""
    found = _table().known.get(gate)
    return found.since if found else None


def locked_from(gate: str) -> Release | None:
    """(1, 34): the first release from which this gate cannot be switched off; None: it is not in the table."""
    found = _table().locked.get(gate)
    return found.since if found else None


def why_refused(gate: str, version: Release, *, on: bool) -> str | None:
    """Why a kubelet of this release does not start with a gate; None: it does, as far as the table knows."""
    found = _refusals(gate, version, on=on)
    return found[-1].why if found else None


def first_refusal(gate: str, version: Release, *, on: bool) -> Refusal | None:
    """The first release up to this one whose kubelet does not start with a gate; None: all do, as far as is known."""
    return min(_refusals(gate, version, on=on), default=None)


def listed_to() -> Release:
    """(1, 37): of later releases nothing is known yet."""
    return max(one.since for one in _table().unknown.values())


def incomplete_releases() -> tuple[Release, ...]:
    """Those of which not all that is gone is listed."""
    return _table().incomplete


def needed_by(version: Release) -> Mapping[str, str]:
    """Gates without which a kubelet of this release offers no GPUs -> what each brings; {} for every newer one."""
    return {gate: why for gate, first, last, why in _table().needed if first <= version <= last}


def _refusals(gate: str, version: Release, *, on: bool) -> list[Refusal]:
    """What a later release says of it comes last: a locked gate goes away after a while."""
    table = _table()
    known = table.known.get(gate)
    if known and version < known.since:
        return [known._replace(since=version, early=True)]
    found = ((table.locked_off if on else table.locked).get(gate), table.unknown.get(gate))
    return [one for one in found if one and version >= one.since]


class _Table(NamedTuple):
    unknown: Mapping[str, Refusal]
    locked: Mapping[str, Refusal]  # on
    locked_off: Mapping[str, Refusal]
    known: Mapping[str, Refusal]  # by the releases before it
    needed: tuple[tuple[str, Release, Release, str], ...]
    incomplete: tuple[Release, ...]


@cache
def _table() -> _Table:
    """Raises UsageError that names row and key of a fault in the file."""
    unknown: dict[str, Refusal] = {}
    locked: dict[str, Refusal] = {}
    locked_off: dict[str, Refusal] = {}
    known: dict[str, Refusal] = {}
    needed: list[tuple[str, Release, Release, str]] = []
    incomplete: list[Release] = []
    for row in rows("feature_gates.yaml", "gates", "release"):
        first = _release(row, "release")
        source = row.provenance()[0]
        pulls = row.maybe_counts("pulls")
        for gate in row.maybe_texts("unknown"):
            pull = f"kubernetes/kubernetes#{pulls[gate]}" if gate in pulls else source
            unknown[gate] = Refusal(first, f"is not known from {first[0]}.{first[1]} on", pull)
        for gate in row.maybe_texts("locked"):
            locked[gate] = Refusal(first, f"cannot be switched off from {first[0]}.{first[1]} on", source)
        for gate in row.maybe_texts("locked_off"):
            locked_off[gate] = Refusal(first, f"cannot be switched on from {first[0]}.{first[1]} on", source)
        too_old = Refusal(first, f"is not known before {first[0]}.{first[1]}", source)
        known |= dict.fromkeys(row.maybe_texts("new"), too_old)
        for gate in row.maybe_texts("needed"):
            needed.append((gate, first, _release(row, "until"), row.text("why")))
        if row.maybe_flag("incomplete"):
            incomplete.append(first)
        row.done()
    return _Table(unknown, locked, locked_off, known, tuple(needed), tuple(sorted(incomplete)))


def _release(row: Row, key: str) -> Release:
    found = release(row.text(key))
    if found is None:
        raise row.fault(key, "not a release such as 1.28")
    return found
