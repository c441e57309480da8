"""What nvidia-smi says of the driver and of each GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.model.gpu_health import GpuHealth, NvLinks
from gpunode.values import dataclass


@dataclass(frozen=True)
class SmiGpu:
    """One GPU of `nvidia-smi -q -x`, also one that nvidia-smi only names because it cannot open it."""

    index: int  # -1: not known
    pci_address: str  # "0000:41:00.0" (nvidia-smi's eight-digit domain shortened); "": not known
    name: str  # "": not known
    uuid: str | None = None
    memory_total_bytes: int | None = None
    persistence: bool | None = None
    mig_mode: str | None = None  # "Enabled" | "Disabled" | None (no MIG)
    mig_pending: str | None = None  # the mode after the GPU's next reset
    mig_profiles: tuple[str, ...] = ()  # "1g.10gb", one for each instance
    mig_uuids: tuple[str, ...] = ()  # "MIG-...", in the same order
    ecc_mode: str | None = None
    fabric_state: str | None = None  # "Completed", "In Progress", "N/A"
    fabric_status: str | None = None
    # "lost" (also: cannot be opened), "reset-required", "error" (a field has ERR! or Unknown Error); None: no such word
    fault: str | None = None
    fault_fields: tuple[str, ...] = ()  # where nvidia-smi says so, the worst first: "temperature/gpu_temp: GPU is lost"
    # what the driver asks for: "None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"; None: not known (before 575)
    recovery: str | None = None
    reset_flags: tuple[str, ...] = ()  # "reset_required", "drain_and_reset_recommended": those that it has set
    health: GpuHealth = field(default_factory=GpuHealth)
    links: NvLinks | None = None  # None: it has none, or they were not asked for
    peers: tuple[str, ...] = ()  # "X", "OK", "CNS": whether it reads the memory of each GPU in turn; (): not known
    fabric_health: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # {"bandwidth": "Full", "route_unhealthy": "False", ...}; {}: this driver has no such fields

    @property
    def asks_for(self) -> str | None:
        """The recovery that the driver names; None where it names none."""
        return None if self.recovery == "None" else self.recovery

    @property
    def requires_reset(self) -> bool:
        """It says so itself, whatever recovery the driver names."""
        return self.fault == "reset-required" or bool(self.reset_flags)


@dataclass(frozen=True)
class SmiFacts:
    """What nvidia-smi answered. code 124: it did not answer within the limit; 127: not installed."""

    code: int
    message: str = ""  # first line of what it printed when code is not 0, the XML aside
    driver_version: str | None = None
    cuda_version: str | None = None
    gpus: tuple[SmiGpu, ...] = ()
    kmd_version: str | None = None  # of the kernel mode driver; 595 and older have no such field
    cuda_umd_version: str | None = None  # of the user mode driver's CUDA API; as above

    @property
    def answered(self) -> bool:
        """It listed the GPUs, be it with a warning, or without those that it cannot open."""
        return self.driver_version is not None or (self.code == 0 and bool(self.gpus))

    @property
    def lost(self) -> tuple[SmiGpu, ...]:
        return tuple(gpu for gpu in self.gpus if gpu.fault == "lost")
