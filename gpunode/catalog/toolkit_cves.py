"""Known CVEs of the container toolkit, and the settings that keep some of them away from an old one."""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass

Workaround = Literal["cdi", "ldconfig", "compat-hook"]


@dataclass(frozen=True)
class ToolkitCve:
    cve: str  # "CVE-2025-23266"
    fixed: str  # "1.17.8"
    cdi_before: str | None  # older ones have it in CDI mode only: "1.17.5"
    workaround: Workaround | None
    source: str
    checked: str
    grade: str


@cache
def toolkit_cves() -> tuple[ToolkitCve, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(map(_row, rows("toolkit_cves.yaml", "toolkit_cves", "cve")))


def _row(row: Row) -> ToolkitCve:
    found = ToolkitCve(
        row.text("cve"), row.text("fixed"), row.maybe_text("cdi_before"),
        row.maybe_one_of("workaround", get_args(Workaround)), *row.provenance(),
    )  # fmt: skip
    row.done()
    return found
