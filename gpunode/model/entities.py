"""What a finding is about, as data: a program drains by GPU, restarts by unit and opens a file at its line."""

from __future__ import annotations

from enum import Enum

from gpunode.values import dataclass


class EntityKind(str, Enum):
    PCI = "pci"  # a PCI function, by its address: "0000:41:00.0"
    GPU = "gpu"  # a GPU or MIG device, by its UUID
    UNIT = "unit"  # of systemd: "docker.service"
    FILE = "file"  # a path; `line` where one line of it is meant


@dataclass(frozen=True)
class Entity:
    """One thing that a finding is about."""

    kind: EntityKind
    name: str
    line: int | None = None  # of a file, from 1


def pci(*addresses: str) -> tuple[Entity, ...]:
    return tuple(Entity(EntityKind.PCI, address) for address in addresses)


def gpu(*uuids: str) -> tuple[Entity, ...]:
    return tuple(Entity(EntityKind.GPU, uuid) for uuid in uuids)


def unit(*names: str) -> tuple[Entity, ...]:
    return tuple(Entity(EntityKind.UNIT, name) for name in names if name)


def place(path: str, line: int | None = None) -> Entity:
    return Entity(EntityKind.FILE, path, line)
