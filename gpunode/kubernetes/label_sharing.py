"""How a resource is shared by the device plugin's configuration, as GPU feature discovery tells it.

internal/lm/resource.go of k8s-device-plugin 0.20.0: `sharing.mps` where it is there, else `sharing.timeSlicing`.
"""

from __future__ import annotations

from gpunode.kubernetes.label_values import legal_value
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import NVIDIA_RESOURCES, PluginConfig
from gpunode.values import dataclass


@dataclass(frozen=True)
class Unknown:
    reason: str


@dataclass(frozen=True)
class Share:
    replicas: int = 1  # of each device; 0: it is not given to pods by this name
    strategy: str = "none"  # "mps" | "time-slicing" | "none"
    renamed: bool = False

    def product(self, name: str) -> str:
        """A label's value: what is shared is told by it, unless the resource's own name tells it already."""
        return legal_value(f"{name}-SHARED" if self.replicas > 1 and not self.renamed else name)


def config_in_force(host: HostFacts) -> PluginConfig | Unknown:
    """An empty one for a device plugin that has none."""
    plugins = host.kubernetes.device_plugins
    configs = plugins.configs if plugins and plugins.here else None
    if configs is None or len(configs) > 1 or any(config.unread for config in configs):
        return Unknown("the device plugin's configuration decides, and which is in force is not known")
    return configs[0] if configs else PluginConfig("")


def share_of(config: PluginConfig | Unknown, resource: str) -> Share | Unknown:
    """`resource`: its name below nvidia.com/, "gpu" or "mig-1g.10gb"."""
    if isinstance(config, Unknown):
        return config
    listed = config.mps or config.time_slicing
    found = next((one for one in listed if one.name == NVIDIA_RESOURCES + resource), None)
    if found is None:
        return Share()
    if found.replicas is None:
        return Unknown("the device plugin's configuration gives no whole number")
    strategy = "mps" if config.mps else "time-slicing"
    return Share(found.replicas, strategy if found.replicas > 1 else "none", found.renamed)
