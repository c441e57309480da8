"""vGPUs by their PCI ids, as catalog/vgpu.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gpunode.catalog.rows import Row, rows


class Guest(NamedTuple):
    pci: str  # "27b8:1733": device and subsystem device
    name: str  # "L4-3Q"
    source: str
    checked: str
    grade: str


@cache
def vgpu_guests() -> Mapping[str, Guest]:
    """By PCI ids. Raises UsageError that names row and key of a fault in the file."""
    return {guest.pci: guest for guest in (_guest(row) for row in rows("vgpu.yaml", "guests", "pci"))}


def _guest(row: Row) -> Guest:
    guest = Guest(row.text("pci"), row.text("name"), *row.provenance())
    row.done()
    return guest
