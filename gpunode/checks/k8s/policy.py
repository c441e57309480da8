"""Policies of the kubelet that change what a container with a GPU gets."""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import DevicePlugins, KubeletSettings
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

PASS = "PASS_DEVICE_SPECS=true, or DEVICE_LIST_STRATEGY=cdi-cri"


@check(
    "k8s.cpumanager",
    Severity.WARNING,
    title="the device plugin fits the static CPU manager",
    reads="cpuManagerPolicy of the kubelet; the settings with which the device plugin's container was made",
    remedy=Remedy(RepairAction.CONFIGURE, f"give the device plugin {PASS}"),
    needs=(needs.kubelet, needs.settings, needs.device_plugins, needs.gpu),
    mode="device-plugin",
)
def cpumanager(host: HostFacts, context: Context) -> CheckOutcome:
    """The CPU manager updates containers while they run, and the device plugin did not name their devices to the
    kubelet: they lose their GPU (Failed to initialize NVML: Unknown Error).
    """
    settings, plugins = host.kubernetes.settings or KubeletSettings(), host.kubernetes.device_plugins
    if settings.cpu_manager != "static":
        return NotApplicable(_policy("cpuManagerPolicy", settings.cpu_manager, settings))
    if plugins is None or plugins.options is None or len(plugins.processes) != 1:
        return NotApplicable("with what settings the device plugin runs is not known")
    if _names_devices(plugins):
        return None
    if plugins.options.get("CONFIG_FILE") and "PASS_DEVICE_SPECS" not in plugins.options:
        return NotApplicable(
            f"the device plugin has its settings from {plugins.options['CONFIG_FILE']}, in its container"
        )
    return Finding(
        "the CPU manager is static, and the device plugin does not name devices to the kubelet",
        evidence="cpuManagerPolicy is static; PASS_DEVICE_SPECS of the device plugin is "
        f"{plugins.options.get('PASS_DEVICE_SPECS', 'not set')}",
        remedy=Remedy(RepairAction.CONFIGURE, f"give the device plugin {PASS} (helm: --set compatWithCPUManager=true)"),
    )


def _names_devices(plugins: DevicePlugins) -> bool:
    options = plugins.options or {}
    passes = options.get("PASS_DEVICE_SPECS", "").lower() in ("true", "1", "t")
    return passes or "cdi" in options.get("DEVICE_LIST_STRATEGY", "")


@check(
    "k8s.topology-manager",
    Severity.WARNING,
    title="where pods are aligned by NUMA node, their CPUs are too",
    reads="topologyManagerPolicy and cpuManagerPolicy of the kubelet",
    remedy=Remedy(RepairAction.CONFIGURE, "set cpuManagerPolicy: static, with CPUs reserved for the system"),
    needs=(needs.kubelet, needs.settings, needs.gpu),
)
def topology_manager(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet aligns devices by NUMA node, and CPUs are shared: a pod runs on CPUs that are far from its GPU."""
    settings = host.kubernetes.settings or KubeletSettings()
    if settings.topology_manager == "none":
        return NotApplicable(_policy("topologyManagerPolicy", "none", settings))
    if settings.cpu_manager == "static":
        return None
    if settings.unread:
        return NotApplicable(f"{settings.unread} was not read")
    return Finding(
        "the kubelet aligns devices by NUMA node, and CPUs are not aligned with them",
        evidence=f"topologyManagerPolicy is {settings.topology_manager}, cpuManagerPolicy is {settings.cpu_manager}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "set cpuManagerPolicy: static and reservedSystemCPUs; drain the node, stop the kubelet, remove "
            "cpu_manager_state from its directory, and start it",
        ),
    )


def _policy(name: str, value: str, settings: KubeletSettings) -> str:
    return f"{settings.unread} was not read" if settings.unread else f"{name} is {value}"
