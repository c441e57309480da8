"""Known CVEs of drivers: the oldest version of each branch without those of NVIDIA's bulletins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpunode.catalog.distros import Distro
from gpunode.catalog.load import Catalog
from gpunode.catalog.rows import Row, rows
from gpunode.model.driver import ModuleFlavour
from gpunode.model.versions import driver_numbers
from gpunode.values import dataclass


@dataclass(frozen=True)
class DriverCve:
    branch: int
    fixed: str  # "580.178.04"
    cve: str
    bulletin: int
    source: str
    checked: str
    grade: str

    def sentence(self, version: str) -> str:
        return f"{version} has {self.cve}, fixed in {self.fixed} (NVIDIA's bulletin {self.bulletin})"


def known_cve(version: str | None) -> DriverCve | None:
    """What this driver has; None where nothing is known of it, which for a branch without a row says nothing."""
    numbers = driver_numbers(version)
    row = driver_cves().get(numbers[0]) if numbers else None
    return row if row and numbers < driver_numbers(row.fixed) else None


def has_fix(catalog: Catalog, distro: Distro | None, cve: DriverCve, flavour: ModuleFlavour | None) -> bool:
    """Whether NVIDIA's repository for this distribution has the branch, and so the release that mends it.

    One that has named branches only, and those ended, gets nothing new any more (CentOS 7).
    """
    names, branch = distro.cuda.names(cve.branch) if distro and distro.cuda else None, catalog.branch(cve.branch)
    if names is None or not names.carries(cve.branch) or not names.of(flavour or "open"):
        return False
    return not names.branches or (branch is not None and branch.status == "supported")


@cache
def driver_cves() -> Mapping[int, DriverCve]:
    """By branch. Raises UsageError that names row and key of a fault in the file."""
    return {row.branch: row for row in map(_row, rows("driver_cves.yaml", "driver_cves", "branch"))}


def _row(row: Row) -> DriverCve:
    found = DriverCve(
        row.number("branch"), row.text("fixed"), row.text("cve"), row.number("bulletin"), *row.provenance()
    )
    if driver_numbers(found.fixed)[:1] != (found.branch,):
        raise row.fault("fixed", f"{found.fixed!r} is no version of branch {found.branch}")
    row.done()
    return found
