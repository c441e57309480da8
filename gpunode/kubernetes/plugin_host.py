"""What the plugin's settings ask of a node, held against the facts of one: the plugin itself cannot see these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpunode.catalog.versions import threshold
from gpunode.kubernetes.plugin_container import driver_root, rights
from gpunode.kubernetes.plugin_groups import LABEL
from gpunode.kubernetes.plugin_model import Plugin, Settings
from gpunode.kubernetes.plugin_pods import Cluster
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.smi import SmiGpu
from gpunode.model.versions import at_least, release

HANDLER = "nvidia"
DOCKER = "docker"  # a kubelet's engine before 1.24 alone
GATE = "DevicePluginCDIDevices"
LOOKS_IN_DRIVER_ROOT = (0, 16)  # of the plugin: it takes libnvidia-ml from there
CDI_DEVICES, CDI_BY_DEFAULT = (1, 28), (1, 29)  # of the kubelet: behind the gate, and without it


def unfit(
    plugin: Plugin, cluster: Cluster, host: HostFacts, engines: Sequence[RuntimeFacts], *, in_pod: bool = True
) -> Iterator[str]:
    """Why pods on this node would get no GPU, or lose it. Nothing for what is not known: `not_known` has that.

    `engines`: those that may run the kubelet's pods; `in_pod`: the plugin is in one, by what is printed.
    """
    settings, engine = _settings(plugin, host), _one(engines)
    if engine:
        yield from _handler(engine, cluster, _wants_handler(plugin, settings, in_pod))
        yield from _cdi(settings, host, engine)
    kubelet = host.kubernetes.settings
    if kubelet and kubelet.cpu_manager == "static" and not (settings.get("pass-device-specs") or settings.cdi):
        yield "cpuManagerPolicy is static: containers lose their GPU without pass-device-specs, or CDI"
    yield from _mig(settings, _gpus(host))


def not_known(
    plugin: Plugin, host: HostFacts, engines: Sequence[RuntimeFacts], *, in_pod: bool = True
) -> Iterator[str]:
    """What could not be held against it, so that silence is no promise."""
    settings, engine = _settings(plugin, host), _one(engines)
    if engine is None:
        yield "the kubelet's engine is not known: its default runtime and CDI were not checked"
    elif _wants_handler(plugin, settings, in_pod) and engine.effective_default is None:
        yield f"{engine.label} did not say which runtime is its default"
    if engine and settings.cdi and engine.cdi is None:
        yield f"whether CDI is enabled in {engine.label} is not known"
    if host.kubernetes.settings is None:
        yield "the kubelet's settings were not read: its CPU manager was not checked"
    if (settings.mig or settings.mps) and not _gpus(host):
        yield "nvidia-smi did not list the GPUs: their MIG layout was not checked"


def _settings(plugin: Plugin, host: HostFacts) -> Settings:
    """Those of the node's group, by its label; the default's where it has none that is known."""
    group = host.kubernetes.node.labels.get(LABEL) if host.kubernetes.node else None
    return plugin.groups.get(group or "", plugin.settings)


def _one(engines: Sequence[RuntimeFacts]) -> RuntimeFacts | None:
    """None where there is none, or more than one."""
    return engines[0] if len(engines) == 1 else None


def _gpus(host: HostFacts) -> tuple[SmiGpu, ...]:
    return host.driver.smi.gpus if host.driver.smi else ()


def _wants_handler(plugin: Plugin, settings: Settings, in_pod: bool) -> str | None:
    """What sees no GPU under another runtime than NVIDIA's; None: nothing does."""
    words = settings.get("device-list-strategy") or ("envvar",)
    if isinstance(words, tuple) and not any(str(word).startswith("cdi-") for word in words):
        return f"device-list-strategy without CDI needs {HANDLER}"  # a variable or mounts, which it alone reads
    if in_pod and not _brings_its_own(plugin):
        return f"the plugin's own container, whose GPUs CDI does not bring, needs {HANDLER}"
    return None


def _brings_its_own(plugin: Plugin) -> bool:
    """Privileged, its container has the host's devices, and NVML from the driver's root; MPS' daemon has none."""
    looks = driver_root(plugin) is not None and plugin.release.numbers >= LOOKS_IN_DRIVER_ROOT
    return looks and bool(rights(plugin).get("privileged")) and not plugin.any("mps")


def _handler(engine: RuntimeFacts, cluster: Cluster, wants: str | None) -> Iterator[str]:
    default = engine.effective_default
    if engine.name == DOCKER and cluster.runtime_class:
        yield "the kubelet starts pods with docker, which knows no RuntimeClass: leave --runtime-class out"
    elif cluster.runtime_class and engine.handlers and HANDLER not in engine.handlers:
        yield f"{engine.label} has no handler {HANDLER}, which the RuntimeClass names: gpunode setup --only runtime"
    elif wants and not (cluster.runtime_class or engine.nvidia_by_default or default is None):
        by_class = "" if engine.name == DOCKER else f"--runtime-class {HANDLER}, or "
        yield f"{engine.label} starts containers by {default}, and {wants}: {by_class}gpunode setup --only runtime"


def _cdi(settings: Settings, host: HostFacts, engine: RuntimeFacts) -> Iterator[str]:
    if not settings.cdi:
        return
    if engine.cdi is False:
        yield f"CDI is not enabled in {engine.label}: gpunode setup --only runtime --cdi"
    if not settings.has("device-list-strategy", "cdi-cri"):
        return
    kubelet, gates = release(host.kubernetes.version), host.kubernetes.settings
    on = bool(gates and (gate := gates.gates.get(GATE)) and gate.on)
    if kubelet and kubelet < CDI_DEVICES:
        yield f"cdi-cri needs a kubelet of 1.28 or later, this one is {host.kubernetes.version}"
    elif kubelet and kubelet < CDI_BY_DEFAULT and not on:
        yield f"cdi-cri needs the feature gate {GATE} on a kubelet of 1.28"
    if engine.name in ("containerd", "crio") and release(engine.version):
        row = threshold(engine.name, "cdi-by-cri")
        if not at_least(engine.version, row.version):
            yield f"cdi-cri needs {engine.name} {row.since} or later, this one is {engine.version}"


def _mig(settings: Settings, gpus: tuple[SmiGpu, ...]) -> Iterator[str]:
    cut = [one for one in gpus if one.mig_mode == "Enabled"]
    if settings.mps and cut:
        yield f"MPS is not for MIG devices, and {len(cut)} of {len(gpus)} GPUs are partitioned"
    if settings.get("mig-strategy") != "single" or not cut:
        return
    profiles = {profile for one in cut for profile in one.mig_profiles}
    if len(cut) < len(gpus) or len(profiles) != 1 or any(not one.mig_profiles for one in cut):
        shown = ", ".join(sorted(profiles)) or "no instance"
        yield (
            f"mig-strategy single needs the same instances on every GPU: {len(cut)} of {len(gpus)} have MIG on, with "
            f"{shown}; mixed gives each profile a resource of its own"
        )
