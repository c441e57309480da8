"""One host of a run, here, over SSH or recorded."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gpunode.transport.base import Transport
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.fleet.inventory.where import FactFilter


@dataclass(frozen=True)
class Host:
    """`transport` stays open until the run ends."""

    transport: Transport
    local: bool = False
    recorded: bool = False
    layer: tuple[tuple[str, str], ...] = ()  # keys of a spec, with their texts, that the inventory has for it
    only: FactFilter | None = field(default=None, compare=False)  # --where

    def __str__(self) -> str:
        return self.transport.target
