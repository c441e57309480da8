"""What one package source provides of the driver, by the distribution's row."""

from __future__ import annotations

from dataclasses import field

from gpunode.catalog.distros import PackageSource
from gpunode.catalog.load import Catalog
from gpunode.model.driver import ModuleFlavour
from gpunode.values import dataclass

BOTH: frozenset[ModuleFlavour] = frozenset({"open", "proprietary"})


@dataclass(frozen=True)
class Offer:
    """What one package source provides: branches, and flavours by branch."""

    name: str  # "NVIDIA's repository for Debian 12"
    flavours: dict[int, frozenset[ModuleFlavour]]
    rolling: bool = False
    transitional: dict[int, int] = field(default_factory=dict)  # branch -> the one that its packages install today

    def __contains__(self, branch: int) -> bool:
        return branch in self.flavours

    @property
    def words(self) -> str:
        if self.rolling and self.flavours:
            return f"its newest, {min(self.flavours)} or later"
        return ", ".join(map(str, sorted(self.flavours))) or "none"


def offer_of(name: str, packages: PackageSource | None, catalog: Catalog) -> Offer:
    """What a distribution's row lists for one of its sources; empty where it has none."""
    found: dict[int, frozenset[ModuleFlavour]] = {}
    moved = packages.transitional if packages else {}
    for branch in catalog.branches if packages else ():
        names = packages.names(branch.number) if packages else None
        if names is not None and names.carries(branch.number) and branch.number not in moved:
            found[branch.number] = frozenset(f for f in BOTH if names.of(f))
    return Offer(name, found, bool(packages and packages.rolling), moved)


def everything(catalog: Catalog) -> Offer:
    """As if one source provided all that the catalog knows."""
    return Offer("the catalog", {b.number: BOTH for b in catalog.branches if b.status != "dead"})
