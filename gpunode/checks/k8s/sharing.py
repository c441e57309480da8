"""GPUs that several pods share, by the device plugin's configuration: is it valid, and does it go with MIG?"""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.health.seen import SMI, about, known, named
from gpunode.checks.k8s.plugin import NO_PLUGIN
from gpunode.checks.mig import shape
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import UNNAMED, DevicePlugins, NodeFacts, PluginConfig
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

PLUGIN = (needs.kubelet, needs.joined, needs.device_plugins, needs.gpu)
READS = "the device plugin's ConfigMaps, as the kubelet mounts them; its options and environment"
CONFIG_MAP = "correct the device plugin's ConfigMap; its pods read it when they start"
# Of config-manager: which key of the ConfigMap counts on this node.
CHOICE = "nvidia.com/device-plugin.config"
SHARED_BY = "nvidia.com/gpu.sharing-strategy"
MIXED = "set migStrategy to mixed (MIG_STRATEGY, --mig-strategy), which gives each profile a resource of its own"


def _plugins(host: HostFacts) -> DevicePlugins:
    return host.kubernetes.device_plugins or DevicePlugins("")


@check(
    "k8s.sharing-config",
    Severity.WARNING,
    title="the device plugin's configuration of time slicing and MPS is valid",
    reads=READS,
    remedy=Remedy(RepairAction.CONFIGURE, CONFIG_MAP),
    needs=PLUGIN,
    mode="device-plugin",
)
def sharing_config(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin's configuration has another version, shares in two ways at once, or among fewer than two."""
    plugins = _plugins(host)
    if not plugins.here:
        return NotApplicable(NO_PLUGIN)
    if not plugins.configs:
        return NotApplicable(_no_config(plugins))
    wrong = [
        f"{config.name}: {listing(faults, between='; ')}"
        for config in plugins.configs
        if (faults := [*_faults(config)])
    ]
    if wrong:
        return Finding(
            "the device plugin's configuration of sharing is not valid",
            evidence=f"the ConfigMap on this node, {listing(wrong, between='; ')}",
            remedy=Remedy(RepairAction.CONFIGURE, CONFIG_MAP),
        )
    unread = next((config for config in plugins.configs if config.unread), None)
    return NotApplicable(f"{unread.name} was not read: {unread.unread}") if unread else None


def _faults(config: PluginConfig) -> Iterator[str]:
    """What is wrong for NVIDIA's device plugin (api/config/v1)."""
    if config.unread:
        return
    if config.version not in ("v1", None):  # it takes one without for v1
        yield f"version is {config.version}, and the plugin knows v1 alone"
    if config.time_slicing and config.mps:
        yield "timeSlicing and mps are both there, and exclude each other"
    for kind in config.bare:
        yield f"{kind} is there and names no resource"
    for flag in config.odd_flags:
        yield f"{flag} is neither true nor false"
    for one in (*config.time_slicing, *config.mps):
        if one.name == UNNAMED:
            yield f"{one.name} is among those that are shared"
        if one.replicas is None or one.replicas < 2:
            found = "no number" if one.replicas is None else one.replicas
            yield f"replicas of {one.name} is {found}, at least 2 are wanted"


def _no_config(plugins: DevicePlugins) -> str:
    if plugins.configs is None:
        return "the volumes of the device plugin's pod were not read"
    file = (plugins.options or {}).get("CONFIG_FILE")
    if file:
        return f"the device plugin has its settings from {file}, which is in none of its ConfigMaps on this node"
    return "the device plugin has no configuration file: no GPU is shared"


@check(
    "mig.uniform",
    Severity.ERROR,
    title="with the strategy single all GPUs are partitioned alike",
    reads=f"{READS}; mig_mode and mig_devices in nvidia-smi -q -x, nvidia-smi -L",
    remedy=Remedy(RepairAction.CONFIGURE, MIXED),
    needs=(*PLUGIN, *SMI),
)
def uniform(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin's MIG strategy is single, and the GPUs are not partitioned alike: it ends, or offers none."""
    if not _plugins(host).here:
        return NotApplicable(NO_PLUGIN)
    strategy = _mig_strategy(host)
    if strategy is None:
        return NotApplicable("the MIG strategy of the device plugin is not known")
    if strategy[0] != "single":
        return NotApplicable(f"the MIG strategy is {strategy[0]} ({strategy[1]}), which any layout goes with")
    modes = known(host, lambda gpu: gpu.mig_mode, "MIG mode")
    if isinstance(modes, NotApplicable):
        return modes
    gpus = list(host.driver.smi.gpus if host.driver.smi else ())
    unnamed = [gpu for gpu in gpus if _instances(gpu) is None]
    if unnamed:
        return NotApplicable(f"nvidia-smi does not name the instances of {named(unnamed)}")
    profiles = {profile for gpu in gpus for profile in _instances(gpu) or ("MIG off",)}
    if len(profiles) > 1:
        return _uneven(gpus, strategy[1])
    if any(gpu.mig_mode == "Enabled" and not gpu.mig_profiles for gpu in gpus):
        return NotApplicable("a GPU is in MIG mode without an instance (mig.layout-vs-wanted)")
    return None


def _instances(gpu: SmiGpu) -> tuple[str, ...] | None:
    """Its profiles; () without MIG; None: it has more than nvidia-smi names."""
    if gpu.mig_mode != "Enabled":
        return ()
    return gpu.mig_profiles if len(gpu.mig_profiles) >= (gpu.health.use.mig_devices or 0) else None


def _uneven(gpus: list[SmiGpu], where: str) -> Finding:
    shapes = (f"{named([gpu])}: {shape(gpu)}" for gpu in gpus)
    return Finding(
        "the MIG strategy is single, and the GPUs are not partitioned alike",
        evidence=f"single by {where}; nvidia-smi -L: {listing(shapes, between='; ')}",
        remedy=Remedy(RepairAction.CONFIGURE, f"{MIXED}; or partition every GPU into instances of one profile"),
        entities=about(gpus),
    )


@check(
    "mig.mixed-with-mps",
    Severity.ERROR,
    title="GPUs in MIG mode are not shared by MPS",
    reads=f"{READS}; mig_mode in nvidia-smi -q -x",
    remedy=Remedy(RepairAction.CONFIGURE, "choose one of MIG and MPS for this node"),
    needs=(*PLUGIN, *SMI),
)
def mixed_with_mps(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin is to share GPUs by MPS, and some are in MIG mode: it refuses that, and offers none."""
    plugins = _plugins(host)
    if not plugins.here:
        return NotApplicable(NO_PLUGIN)
    by = _mps(host)
    if by is None:
        return NotApplicable("whether the device plugin shares GPUs by MPS is not known")
    if not by:
        return NotApplicable("the device plugin does not share GPUs by MPS")
    modes = known(host, lambda gpu: gpu.mig_mode, "MIG mode")
    if isinstance(modes, NotApplicable):
        # GPUs that cannot do MIG have no such mode.
        return None if host.driver.smi and host.driver.smi.answered and host.driver.smi.gpus else modes
    enabled = [gpu for gpu, mode in modes if mode == "Enabled"]
    if not enabled:
        return None
    return Finding(
        f"GPUs are shared by MPS, and {named(enabled)} is in MIG mode",
        evidence=f"{by}; nvidia-smi -q -x, {named(enabled[:1])}: current_mig Enabled",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "take sharing.mps out of the device plugin's configuration (instances can be shared by timeSlicing), or "
            "switch MIG off",
        ),
        entities=about(enabled),
    )


def _mps(host: HostFacts) -> str | None:
    """What says that GPUs are shared by MPS; "" where nothing does; None: not known."""
    plugins, label = _plugins(host), _label(host, SHARED_BY)
    config = _in_force(host)
    if config is not None:
        return f"{config.name} has sharing.mps" if config.mps else ""
    if label is not None:
        return f"the node's label {SHARED_BY} is mps" if label == "mps" else ""
    options = plugins.options
    return "" if plugins.configs == () and options is not None and "CONFIG_FILE" not in options else None


def _mig_strategy(host: HostFacts) -> tuple[str, str] | None:
    """The strategy, and what says so: the plugin takes a flag, then its environment, then its file, then none."""
    plugins = _plugins(host)
    if plugins.options is not None and (told := plugins.options.get("MIG_STRATEGY")):
        return told, "MIG_STRATEGY of the device plugin"
    config = _in_force(host)
    if plugins.options is not None and config is not None:
        return config.mig_strategy or "none", config.name
    if (label := _label(host, "nvidia.com/mig.strategy")) is not None:
        return label, "the node's label nvidia.com/mig.strategy"
    if plugins.options is not None and plugins.configs == () and "CONFIG_FILE" not in plugins.options:
        return "none", "the device plugin's default"
    return None


def _in_force(host: HostFacts) -> PluginConfig | None:
    """The configuration that the plugin has; None where there is none, or which one it is is not known."""
    plugins = _plugins(host)
    configs, label = plugins.configs or (), _label(host, CHOICE)
    file = (plugins.options or {}).get("CONFIG_FILE", "").rpartition("/")[2]
    if label is not None or any(config.key == file for config in configs):
        configs = tuple(config for config in configs if config.key == (label or file))
    return configs[0] if len(configs) == 1 and configs[0].unread is None else None


def _label(host: HostFacts, name: str) -> str | None:
    return (host.kubernetes.node or NodeFacts()).labels.get(name)
