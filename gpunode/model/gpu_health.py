"""What nvidia-smi says of one GPU's memory, clocks, power and links. None: it gives no value, or none that is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.values import dataclass


@dataclass(frozen=True)
class MemoryErrors:
    """ECC errors since the driver was loaded or the GPU was reset (volatile), and what the driver concludes of them."""

    sram_uncorrectable: int | None = None
    dram_uncorrectable: int | None = None
    sram_corrected: int | None = None
    dram_corrected: int | None = None
    sram_threshold_exceeded: bool | None = None  # so many over its life that NVIDIA replaces it
    channel_repair_pending: bool | None = None  # a spare memory channel is taken at the next reset (Blackwell)
    tpc_repair_pending: bool | None = None  # a spare processing cluster is taken at the next reset
    unrepairable: bool | None = None  # the memory has a fault that no spare makes up for


@dataclass(frozen=True)
class MemoryRepairs:
    """Rows that were replaced by spare ones (Ampere and newer), pages that are not used any more (older GPUs)."""

    rows_uncorrectable: int | None = None  # rows remapped after an error that could not be corrected
    rows_pending: bool | None = None  # a remapping waits for a reset
    rows_failed: bool | None = None  # a remapping failed
    banks_low: int | None = None  # memory banks with few spare rows left
    banks_none: int | None = None  # and with none
    pages_single_bit: int | None = None
    pages_double_bit: int | None = None
    pages_pending: bool | None = None  # a page waits to be taken out of use


@dataclass(frozen=True)
class Temperatures:
    """In degrees Celsius. Newer drivers give the distance to a limit where older ones gave the limit."""

    gpu: int | None = None
    slowdown: int | None = None  # from this on the GPU halves its clocks; None on newer drivers
    margin: int | None = None  # to the highest operating temperature; below zero: above that
    slowdown_margin: int | None = None  # the margin at which the GPU halves its clocks, "-2"
    memory: int | None = None
    memory_max: int | None = None  # None on newer drivers


@dataclass(frozen=True)
class Clocks:
    """What holds the clocks down, and by how much they were set lower."""

    state: str | None = None  # performance state: "P0" is the fastest
    reasons: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    # {"gpu_idle": True, "hw_thermal_slowdown": False}: what holds them down now, and what does not; {}: not known
    hw_thermal_us: int | None = None  # how long heat has held them down, since the driver was loaded
    hw_power_brake_us: int | None = None  # and the power supply
    application_mhz: int | None = None  # what they were set to; deprecated by 590
    application_default_mhz: int | None = None


@dataclass(frozen=True)
class PowerLimits:
    """In watts."""

    limit: float | None = None  # that is in force
    requested: float | None = None  # that was set; None before 530
    default: float | None = None


@dataclass(frozen=True)
class PcieLink:
    generation: int | None = None
    generation_max: int | None = None  # of GPU and slot together
    replays: int | None = None  # packets sent again since the last reset
    rollovers: int | None = None  # times that the counter of replays overflowed


@dataclass(frozen=True)
class GpuUse:
    """Who may use it, and what of it is in use."""

    compute_mode: str | None = None  # "Default", "Exclusive_Process", "Prohibited"
    virtualization: str | None = None  # "None", "Pass-Through", "Host VGPU", "Host VSGA", "VGPU"
    busy_percent: int | None = None
    memory_used_bytes: int | None = None  # without what the driver reserves; None where it is counted in (before 510)
    processes: int | None = None  # that have it open
    mig_devices: int | None = None  # MIG instances that a program can be given
    licence: str | None = None  # of a vGPU: "Licensed (Expiry: ...)", "Unlicensed (Restricted)"


@dataclass(frozen=True)
class GpuBoard:
    part: str | None = None  # part number of the board: "695-2G520-0280-001"
    vbios: str | None = None


@dataclass(frozen=True)
class LinkErrors:
    """Errors of one kind on one NVLink since the last reset."""

    link: int
    kind: str  # "Replay" | "Recovery" | "CRC"
    count: int


@dataclass(frozen=True)
class NvLinks:
    active: int  # links that are up
    inactive: tuple[int, ...] = ()  # numbers of those that are not; () as well where nvidia-smi does not name them
    errors: tuple[LinkErrors, ...] = ()  # of each link and kind, 0 included; (): not known


@dataclass(frozen=True)
class GpuHealth:
    ecc_pending: str | None = None  # the mode after the GPU's next reset: "Enabled" | "Disabled"
    errors: MemoryErrors = MemoryErrors()
    repairs: MemoryRepairs = MemoryRepairs()
    temperatures: Temperatures = Temperatures()
    clocks: Clocks = Clocks()
    power: PowerLimits = PowerLimits()
    link: PcieLink = PcieLink()
    use: GpuUse = GpuUse()
    board: GpuBoard = GpuBoard()
