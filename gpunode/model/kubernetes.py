"""What a kubelet was told, what device plugins have told it, and how its node stands in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.foreign import whole_number
from gpunode.regex import regex
from gpunode.values import dataclass

NVIDIA_RESOURCES = "nvidia.com/"
GPU = f"{NVIDIA_RESOURCES}gpu"
LONGEST_RESOURCE = 63  # characters of a resource's name
_RESOURCE = regex(r"nvidia\.com/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
GPU_DRA_DRIVER = "gpu.nvidia.com"
COMPUTE_DOMAIN_DRIVER = "compute-domain.nvidia.com"  # of the same pod: memory of other hosts' GPUs, by nvidia-imex
KUBELET_UNIT = "kubelet.service"
CDI_REFRESH_UNIT = "nvidia-cdi-refresh.service"
CLOUDS = ("eks", "aks", "gke")  # of KubernetesFacts.distribution: nodes that a cloud's own programs make


def boot_drop_in(unit: str) -> str:
    """gpunode's own drop-in of a unit, by which it starts after the GPUs can be used."""
    return f"/etc/systemd/system/{unit}.d/50-gpunode.conf"


@dataclass(frozen=True)
class Gate:
    on: bool
    where: str  # "--feature-gates" | "featureGates of /var/lib/kubelet/config.yaml"


@dataclass(frozen=True)
class KubeletSettings:
    """Of flags, the file and its drop-ins; what none of them says has the kubelet's default."""

    gates: Mapping[str, Gate] = field(default_factory=lambda: MappingProxyType({}))
    node_labels: tuple[str, ...] = ()  # keys of --node-labels, which act only when the node registers
    cpu_manager: str = "none"  # cpuManagerPolicy
    topology_manager: str = "none"  # topologyManagerPolicy
    container_runtime: str | None = None  # --container-runtime: "remote" for all but the docker of releases before 1.24
    endpoint: str | None = None  # --container-runtime-endpoint, "unix:///run/cri-dockerd.sock"; None: not known
    config: str | None = None  # its KubeletConfiguration, "/var/lib/kubelet/config.yaml"
    config_dir: str | None = None  # of drop-ins for it (--config-dir)
    unread: str | None = None  # a file of it that was not read: what is not said here is not known


@dataclass(frozen=True)
class Told:
    """One gate or flag that the kubelet is told, at one place."""

    name: str  # "DevicePlugins", "container-runtime"
    value: str  # "true"; "" where a flag has none, or it is not known
    where: str  # "/etc/default/kubelet:2", "--feature-gates"
    path: str = ""  # of the file; "": it stands in none that was read
    packaged: bool = False  # the file belongs to a package

    @property
    def on(self) -> bool:
        return is_on(self.value)


def is_on(word: str) -> bool:
    """As strconv.ParseBool reads it."""
    return word in ("true", "True", "TRUE", "t", "T", "1")


@dataclass(frozen=True)
class KubeletTold:
    """All that the kubelet is told, by every file that decides how it starts."""

    gates: tuple[Told, ...] = ()
    flags: tuple[Told, ...] = ()
    unknown: tuple[str, ...] = ()  # sentences: what of it is not known, and why
    settings_known: bool = False  # all that its configuration says of failSwapOn and the like, or it has none

    def flag(self, name: str) -> tuple[Told, ...]:
        """The places where it stands."""
        return tuple(one for one in self.flags if one.name == name)


@dataclass(frozen=True)
class PluginPod:
    """A container of a pod of NVIDIA's on this node, by the directories in which the kubelet keeps its logs."""

    pod: str  # "kube-system_nvidia-device-plugin-daemonset-x7x2k": namespace and name
    container: str
    restarts: int | None  # None: it has no log yet


UNNAMED = "a resource without a name"


def resource_name(name: str) -> str | None:
    """ "gpu" -> "nvidia.com/gpu", as the device plugin makes it; None for what is no name to it.

    Of api/config/v1/resources.go, NewResourceName: a DNS subdomain after the prefix, at most LONGEST_RESOURCE in all.
    """
    whole = NVIDIA_RESOURCES + name.removeprefix(NVIDIA_RESOURCES)
    return whole if len(whole) <= LONGEST_RESOURCE and _RESOURCE.fullmatch(whole) else None


def is_of_gpus(resource: str) -> bool:
    """Whether it gives pods GPUs: "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb".

    NVIDIA's device plugin gives them no other names: it ignores `resources` and `rename` of its configuration, and
    renameByDefault adds ".shared". All else below nvidia.com is of other plugins: network cards ("nvidia.com/hostdev",
    by its Network Operator), GPUs that virtual machines get.
    """
    return resource == GPU or resource.startswith((f"{GPU}.", f"{NVIDIA_RESOURCES}mig-"))


def gpu_counts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Of a node's capacity or allocatable what is of GPUs, in devices: "nvidia.com/gpu" -> 8.

    Without what is no whole number, as an extended resource always is.
    """
    counts = {name: whole_number(text) for name, text in quantities.items() if is_of_gpus(name)}
    return {name: count for name, count in counts.items() if count is not None}


@dataclass(frozen=True)
class SharedResource:
    """A resource of which several containers get the same device."""

    name: str  # "nvidia.com/gpu"; UNNAMED: none, or none that is a resource's
    replicas: int | None  # None: it is no whole number, or not there
    renamed: bool = False  # renameByDefault: pods ask for nvidia.com/gpu.shared


@dataclass(frozen=True)
class PluginConfig:
    """What one file of a device plugin's ConfigMaps says of sharing; where there are several, one is in force."""

    name: str  # "available-configs/config.yaml": its volume and its key
    version: str | None = None  # "v1"
    mig_strategy: str | None = None  # flags.migStrategy
    time_slicing: tuple[SharedResource, ...] = ()
    mps: tuple[SharedResource, ...] = ()
    bare: tuple[str, ...] = ()  # "timeSlicing": there, and without a resource
    odd_flags: tuple[str, ...] = ()  # "timeSlicing.renameByDefault": there, and neither true nor false
    unread: str | None = None  # why none of it is known

    @property
    def key(self) -> str:
        return self.name.partition("/")[2]


@dataclass(frozen=True)
class DevicePlugins:
    """The kubelet's directory for device plugins, and NVIDIA's plugin in front of it."""

    directory: str  # "/var/lib/kubelet/device-plugins"
    kubelet_socket: bool = False
    sockets: Mapping[str, bool] = field(
        default_factory=lambda: MappingProxyType({})
    )  # of NVIDIA's plugins -> made after the kubelet's own, which tells that the plugin has seen this kubelet
    registered: Mapping[str, tuple[str, ...]] | None = None  # resource -> ids of healthy devices; None: not known
    pods: tuple[PluginPod, ...] | None = None  # of NVIDIA's; None: not known
    processes: tuple[int, ...] = ()  # pids of device plugins of NVIDIA's
    image: str | None = None  # of a plugin that runs: "nvcr.io/nvidia/k8s-device-plugin:v0.18.0"
    options: Mapping[str, str] | None = None  # of that plugin: "PASS_DEVICE_SPECS" -> "true"; None: not known
    said: str | None = None  # the last that the plugin's log says about GPUs that it does not see
    pod_resources: bool = False  # the socket of the PodResources API is there
    root: str | None = None  # where the kubelet keeps all else, "/var/lib/k0s/kubelet"; None: a recording from before
    dra: frozenset[str] = frozenset()  # NVIDIA's DRA drivers that are there: "gpu.nvidia.com"
    validations: frozenset[str] = frozenset()  # of the GPU Operator: "driver-ready"
    configs: tuple[PluginConfig, ...] | None = None  # of the plugin's ConfigMaps; None: not known
    waits: Mapping[str, bool] = field(
        default_factory=lambda: MappingProxyType({})
    )  # a pod of a plugin that has no container yet -> it has waited for more than ten minutes
    allocated: int | None = None  # pods to which devices were given, by the kubelet's checkpoint; None: not known
    ghosts: tuple[str, ...] = ()  # UIDs of those of which the kubelet has no directory any more
    kept: bool = False  # it had none when it wrote the checkpoint, for the newest pod, and kept them all the same

    @property
    def resources(self) -> Mapping[str, tuple[str, ...]]:
        """What is registered of GPUs, with devices or without."""
        return {name: ids for name, ids in (self.registered or {}).items() if is_of_gpus(name)}

    @property
    def plugin_pods(self) -> tuple[PluginPod, ...]:
        return tuple(p for p in self.pods or () if p.container.startswith("nvidia-device-plugin"))

    @property
    def here(self) -> bool:
        """A device plugin of NVIDIA's is on this node, or was a moment ago."""
        return bool(self.sockets or any(self.resources.values()) or self.plugin_pods or self.processes)


@dataclass(frozen=True)
class NodeFacts:
    """The node's object, as the API server gave it to the kubelet's own kubeconfig."""

    conditions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # "Ready" -> "False KubeletX"
    capacity: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    allocatable: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    taints: tuple[str, ...] = ()  # "NoSchedule nvidia.com/gpu"
    unschedulable: bool = False  # cordoned
    images: tuple[str, ...] | None = None  # of NVIDIA's: "nvcr.io/nvidia/gpu-operator:v25.3.1"; None: not known
