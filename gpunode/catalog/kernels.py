"""Which drivers do not build on which kernels."""

from __future__ import annotations

import re
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import driver_numbers, release
from gpunode.values import dataclass


@dataclass(frozen=True)
class KernelRow:
    branch: int
    kernel: tuple[int, int]  # (7, 0): on this kernel and newer ones
    first: str | None  # the branch's first version that builds there; None: no such version is known
    source: str
    checked: str
    grade: str

    def sentence(self, version: str, kernel: str) -> str:
        mended = f"{self.first} is the first that does" if self.first else f"none of branch {self.branch} is known to"
        return f"driver {version} does not build on Linux {kernel}; {mended}"


def misfit(version: str | None, kernel: str) -> KernelRow | None:
    """What keeps this driver from this kernel ("7.0.9-1-generic"); None where nothing is known against the pair."""
    numbers, running = driver_numbers(version), release(kernel)
    if not numbers or running is None:
        return None
    rows_here = (row for row in kernel_rows() if row.branch == numbers[0] and running >= row.kernel)
    return next((row for row in rows_here if row.first is None or numbers < driver_numbers(row.first)), None)


@cache
def kernel_rows() -> tuple[KernelRow, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    found = (_row(row) for row in rows("kernels.yaml", "kernels", "branch"))
    return tuple(sorted(found, key=lambda row: row.kernel, reverse=True))  # the newest kernel asks for most


def _row(row: Row) -> KernelRow:
    kernel = re.fullmatch(r"(\d+)\.(\d+)", row.text("kernel"))
    if kernel is None:
        raise row.fault("kernel", "not a kernel such as 7.0")
    numbers = (int(kernel[1]), int(kernel[2]))
    found = KernelRow(row.number("branch"), numbers, row.maybe_text("first"), *row.provenance())
    row.done()
    return found
