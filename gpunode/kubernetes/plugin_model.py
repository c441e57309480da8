"""What a device plugin is told: options by name, and what is shared. One model for every spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Literal

from gpunode.catalog.plugin_options import PluginOption
from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.values import dataclass

Value = str | bool | tuple[str, ...] | tuple[int, ...]
Strategy = Literal["timeSlicing", "mps"]
STRATEGIES: tuple[Strategy, ...] = ("timeSlicing", "mps")
MPS_ROOT = "/run/nvidia/mps"  # the chart's


@dataclass(frozen=True)
class Shared:
    """A resource of which several containers get the same device."""

    name: str  # "nvidia.com/gpu"
    replicas: int


@dataclass(frozen=True)
class Sharing:
    strategy: Strategy
    resources: tuple[Shared, ...]
    rename: bool = False  # renameByDefault: nvidia.com/gpu.shared
    fail_above_one: bool | None = None  # failRequestsGreaterThanOne; None: not said


@dataclass(frozen=True)
class Settings:
    """What is not in it has the plugin's default."""

    values: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))  # option's name -> its value
    sharing: Sharing | None = None

    def get(self, name: str) -> Value | None:
        return self.values.get(name)

    def has(self, name: str, word: str) -> bool:
        """Whether `word` is among the words of an option."""
        value = self.values.get(name)
        return value == word or (isinstance(value, tuple) and word in value)

    @property
    def mps(self) -> bool:
        return self.sharing is not None and self.sharing.strategy == "mps"

    @property
    def mig(self) -> bool:
        return self.values.get("mig-strategy", "none") != "none"

    @property
    def cdi(self) -> bool:
        """Whether a way of giving devices needs CDI."""
        return self.has("device-list-strategy", "cdi-cri") or self.has("device-list-strategy", "cdi-annotations")


@dataclass(frozen=True)
class Plugin:
    """One release of the plugin and its settings, by the name of the node group that they are for."""

    release: PluginRelease
    options: tuple[PluginOption, ...]
    groups: Mapping[str, Settings]  # the first is the default; one alone is named "default"

    @property
    def settings(self) -> Settings:
        """Those of the default group."""
        return next(iter(self.groups.values()))

    @property
    def grouped(self) -> bool:
        return len(self.groups) > 1

    def any(self, *names: Literal["mps", "mig", "cdi"]) -> bool:
        """Whether one of the groups has one of these."""
        return any(getattr(one, name) for one in self.groups.values() for name in names)
