"""Systems that are set up using their native mechanism alone: an image's build, extensions, snaps, a configuration."""

from __future__ import annotations

from gpunode.catalog.rows import Row, rows
from gpunode.model.driver import Grade
from gpunode.values import dataclass


@dataclass(frozen=True)
class OwnSystem:
    id: str  # os-release ID
    name: str
    why: str  # what would undo or prevent a change of gpunode's
    way: str  # how driver and toolkit come onto it
    source: str
    checked: str
    grade: Grade


def read_systems() -> tuple[OwnSystem, ...]:
    return tuple(_system(row) for row in rows("systems.yaml", "systems", "id"))


def _system(row: Row) -> OwnSystem:
    system = OwnSystem(row.text("id"), row.text("name"), row.text("why"), row.text("way"), *row.provenance())
    row.done()
    return system
