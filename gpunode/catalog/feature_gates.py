"""Feature gates that keep a kubelet from starting, or from offering GPUs, as catalog/feature_gates.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import release

Release = tuple[int, int]


def unknown_from(gate: str) -> tuple[int, int] | None:
    """(1, 28): the first release whose kubelet does not know this gate; None: it is not in the table."""
    return _table()[0].get(gate)


def locked_from(gate: str) -> tuple[int, int] | None:
    """(1, 34): the first release from which this gate cannot be switched off; None: it is not in the table."""
    return _table()[1].get(gate)


def why_refused(gate: str, version: tuple[int, int], *, on: bool) -> str | None:
    """Why a kubelet of this release does not start with a gate; None: it does, as far as the table knows."""
    unknown, locked = unknown_from(gate), locked_from(gate)
    if unknown and version >= unknown:
        return f"is not known from {unknown[0]}.{unknown[1]} on"
    if locked and version >= locked and not on:
        return f"cannot be switched off from {locked[0]}.{locked[1]} on"
    return None


def needed_by(version: tuple[int, int]) -> Mapping[str, str]:
    """Gates without which a kubelet of this release offers no GPUs -> what each brings; {} for every newer one."""
    return {gate: why for gate, first, last, why in _table()[2] if first <= version <= last}


@cache
def _table() -> tuple[Mapping[str, Release], Mapping[str, Release], tuple[tuple[str, Release, Release, str], ...]]:
    """Raises UsageError that names row and key of a fault in the file."""
    unknown: dict[str, Release] = {}
    locked: dict[str, Release] = {}
    needed: list[tuple[str, Release, Release, str]] = []
    for row in rows("feature_gates.yaml", "gates", "release"):
        first = _release(row, "release")
        unknown |= dict.fromkeys(row.maybe_texts("unknown"), first)
        locked |= dict.fromkeys(row.maybe_texts("locked"), first)
        for gate in row.maybe_texts("needed"):
            needed.append((gate, first, _release(row, "until"), row.text("why")))
        row.provenance()
        row.done()
    return unknown, locked, tuple(needed)


def _release(row: Row, key: str) -> Release:
    found = release(row.text(key))
    if found is None:
        raise row.fault(key, "not a release such as 1.28")
    return found
