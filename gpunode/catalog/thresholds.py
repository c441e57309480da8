"""From how much on a counter is worth a person's look: one row of thresholds.yaml for each."""

from __future__ import annotations

from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.driver import Grade
from gpunode.values import dataclass


@dataclass(frozen=True)
class Threshold:
    name: str  # "pcie-replays"
    limit: int
    unit: str  # "replays"
    source: str
    checked: str
    grade: Grade


def threshold(name: str) -> int:
    """The limit of this name; KeyError for one that the file does not have."""
    return _by_name()[name].limit


@cache
def _by_name() -> dict[str, Threshold]:
    """Raises UsageError that names row and key of a fault in the file."""
    return {row.name: row for row in map(_read, rows("thresholds.yaml", "thresholds", "name"))}


def _read(row: Row) -> Threshold:
    found = Threshold(row.text("name"), row.number("limit"), row.text("unit"), *row.provenance())
    row.done()
    return found
