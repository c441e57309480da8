"""Numbers that checks of the machine go by."""

from __future__ import annotations

from functools import cache

from gpunode.catalog.rows import rows


def limit(name: str) -> int:
    """The number of that name in the table."""
    return system_limits()[name]


@cache
def system_limits() -> dict[str, int]:
    """Raises UsageError that names row and key of a fault in the file."""
    found = {}
    for row in rows("system_limits.yaml", "limits", "name"):
        found[row.text("name")] = row.number("value")
        row.provenance()
        row.done()
    return found
