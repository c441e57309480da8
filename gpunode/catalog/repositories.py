"""Places in old package lists from which nothing comes any more, as catalog/repositories.yaml lists them."""

from __future__ import annotations

import re
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass


@dataclass(frozen=True)
class DeadRepository:
    pattern: str  # a regular expression, found in an entry's text
    why: str  # "nvidia-docker's repository has ended"
    source: str
    checked: str
    grade: str


def why_dead(entry: str) -> str | None:
    """Why nothing comes from this entry any more; None for one that no row has."""
    return next((row.why for row in dead_repositories() if re.search(row.pattern, entry)), None)


@cache
def dead_repositories() -> tuple[DeadRepository, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(map(_dead, rows("repositories.yaml", "dead", "pattern")))


def _dead(row: Row) -> DeadRepository:
    pattern = row.text("pattern")
    try:
        re.compile(pattern)
    except re.error as fault:
        raise row.fault("pattern", f"not a regular expression: {fault}") from None
    dead = DeadRepository(pattern, row.text("why"), *row.provenance())
    row.done()
    return dead
