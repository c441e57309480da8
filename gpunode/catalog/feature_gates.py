"""Feature gates that keep a kubelet from starting, as catalog/feature_gates.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import release


def unknown_from(gate: str) -> tuple[int, int] | None:
    """(1, 28): the first release whose kubelet does not know this gate; None: it is not in the table."""
    return _table()[0].get(gate)


def locked_from(gate: str) -> tuple[int, int] | None:
    """(1, 34): the first release from which this gate cannot be switched off; None: it is not in the table."""
    return _table()[1].get(gate)


@cache
def _table() -> tuple[Mapping[str, tuple[int, int]], Mapping[str, tuple[int, int]]]:
    """Raises UsageError that names row and key of a fault in the file."""
    unknown: dict[str, tuple[int, int]] = {}
    locked: dict[str, tuple[int, int]] = {}
    for row in rows("feature_gates.yaml", "gates", "release"):
        first = _release(row)
        unknown |= dict.fromkeys(row.maybe_texts("unknown"), first)
        locked |= dict.fromkeys(row.maybe_texts("locked"), first)
        row.provenance()
        row.done()
    return unknown, locked


def _release(row: Row) -> tuple[int, int]:
    found = release(row.text("release"))
    if found is None:
        raise row.fault("release", "not a release such as 1.28")
    return found
