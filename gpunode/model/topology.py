"""Where GPUs and RDMA devices are in the PCI tree, and how the switches above them forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.values import dataclass


@dataclass(frozen=True)
class Place:
    """One PCI function's."""

    bridges: tuple[str, ...]  # above it, from the root port on: ("0000:15:01.0", "0000:16:00.0", "0000:17:02.0")
    numa_node: int | None = None  # None: the firmware does not say


@dataclass(frozen=True)
class Topology:
    # PCI address of a GPU or an RDMA device -> where it is; no entry in a virtual machine or a container
    places: Mapping[str, Place] = field(default_factory=lambda: MappingProxyType({}))
    # PCI address of a switch's port -> its ACS control register; None: it has none; no entry: it could not be read
    acs: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
