"""The host of a plan in one line's worth of values."""

from __future__ import annotations

from gpunode.values import dataclass


@dataclass(frozen=True)
class GpuCount:
    model: str  # "H100 SXM5 80GB"
    count: int


@dataclass(frozen=True)
class EngineVersion:
    name: str  # "docker", "k3s"; "docker@ann" where a user runs it
    version: str | None  # of the engine; of its containerd, where Kubernetes carries it
    kubernetes: str | None = None  # version of the Kubernetes that carries it, "1.31.4+k3s1"


@dataclass(frozen=True)
class HostSummary:
    system: str = ""  # "Ubuntu 24.04"
    kernel: str = ""  # "6.8.0-51-generic"
    gpus: tuple[GpuCount, ...] = ()  # one entry for each model
    nvswitches: int = 0
    engines: tuple[EngineVersion, ...] = ()
