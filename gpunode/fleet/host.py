"""One host of a run, here, over SSH or recorded."""

from __future__ import annotations

from dataclasses import dataclass

from gpunode.transport.base import Transport


@dataclass(frozen=True)
class Host:
    """`transport` stays open until the run ends."""

    transport: Transport
    local: bool = False
    recorded: bool = False

    def __str__(self) -> str:
        return self.transport.target
