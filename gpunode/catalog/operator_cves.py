"""Known CVEs of NVIDIA's GPU Operator, by the releases that mend them."""

from __future__ import annotations

from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import three_numbers
from gpunode.values import dataclass


@dataclass(frozen=True)
class OperatorCve:
    fixed: tuple[int, ...]  # (25, 3, 1)
    cve: str
    source: str
    checked: str
    grade: str

    @property
    def version(self) -> str:
        return ".".join(map(str, self.fixed))


def operator_cves_of(version: tuple[int, ...]) -> tuple[OperatorCve, ...]:
    """What this release has, oldest first: the last one's `fixed` mends them all."""
    return tuple(row for row in operator_cves() if version < row.fixed)


@cache
def operator_cves() -> tuple[OperatorCve, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    found = tuple(_row(row) for row in rows("operator_cves.yaml", "operator_cves", "cve"))
    return tuple(sorted(found, key=lambda one: one.fixed))


def _row(row: Row) -> OperatorCve:
    fixed = three_numbers(row.text("fixed"))
    if fixed is None:
        raise row.fault("fixed", "it is a release such as 25.3.1")
    found = OperatorCve(fixed, row.text("cve"), *row.provenance())
    row.done()
    return found
