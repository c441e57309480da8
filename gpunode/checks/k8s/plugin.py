"""From NVIDIA's device plugin to the kubelet: is it there, does it see the GPUs, has the kubelet heard of them?"""

from __future__ import annotations

import re

from gpunode.advice import listing
from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.k8s.operator import awaited, not_running
from gpunode.checks.k8s.start import restart
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.engines import wanted
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubernetes import GPU_DRA_DRIVER, DevicePlugins, NodeFacts, is_of_gpus
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import at_least
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction

PLUGIN = (needs.kubelet, needs.joined, needs.running_kubelet, needs.device_plugins, needs.gpu)
NO_PLUGIN = "no device plugin of NVIDIA's is on this node (k8s.dp-container)"
LOGS = "kubectl logs of its pod shows why"
RESTART = "delete its pod, and its DaemonSet makes another"
_TAG = regex(r"/k8s-device-plugin:v?([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9})(-[\w.]+)?(@|\Z)", re.ASCII)


def _plugins(host: HostFacts) -> DevicePlugins:
    return host.kubernetes.device_plugins or DevicePlugins("")


@check(
    "k8s.dp-dir",
    Severity.ERROR,
    title="the kubelet listens for device plugins",
    reads="kubelet.sock in /var/lib/kubelet/device-plugins",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl restart kubelet"),
    needs=PLUGIN,
    mode="device-plugin",
)
def dp_dir(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet's socket for device plugins is not there: none of them can register."""
    plugins = _plugins(host)
    if plugins.kubelet_socket:
        return None
    return Finding(
        "the kubelet has no socket for device plugins",
        evidence=f"{plugins.directory}/kubelet.sock is not there, or no socket",
        remedy=Remedy(RepairAction.RESTART_SERVICE, f"{restart(host)}, which makes it; pods keep running"),
    )


@check(
    "k8s.dp-container",
    Severity.ERROR,
    title="NVIDIA's device plugin runs on this node",
    reads="processes; /var/log/pods; /var/lib/kubelet/device-plugins; the node's object",
    remedy=Remedy(RepairAction.CONFIGURE, "deploy NVIDIA's device plugin, or its GPU Operator"),
    needs=PLUGIN,
    mode="device-plugin",
)
def dp_container(host: HostFacts, context: Context) -> CheckOutcome:
    """NVIDIA's device plugin does not run on this node: Kubernetes does not know of its GPUs."""
    plugins = _plugins(host)
    if plugins.processes:
        return None
    if plugins.plugin_pods:
        return _ends(plugins)
    if GPU_DRA_DRIVER in plugins.dra:
        return NotApplicable(f"a DRA driver ({GPU_DRA_DRIVER}) hands out the GPUs")
    if plugins.waits and not any(plugins.waits.values()):
        return NotApplicable(f"{listing(plugins.waits)} has just come, and has no container yet")
    if plugins.here:
        return _without_process(plugins, host.kubernetes.node)
    if plugins.pods is None:
        return NotApplicable("which pods are on this node is not known: /var/log/pods was not read")
    if not_running(host) or awaited(plugins):
        return NotApplicable("the GPU Operator deploys one once it has validated the node (k8s.operator-managed)")
    pods = f"of {listing(plugins.waits)} no container" if plugins.waits else "no pod"
    return Finding(
        "no device plugin of NVIDIA's is on this node",
        evidence=f"{plugins.directory} has no socket of one, /var/log/pods {pods}, and no process runs",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "deploy NVIDIA's device plugin (chart nvidia-device-plugin) or the GPU Operator; where one is deployed, "
            "taints and node selectors keep it away",
        ),
        severity=Severity.WARNING,  # Kubernetes itself is not set up by gpunode, and maybe not yet by anybody
    )


def _without_process(plugins: DevicePlugins, node: NodeFacts | None) -> CheckOutcome:
    """A plugin of another maker has a process of another name. Of one that was killed its socket and the kubelet's
    checkpoint stay, but the kubelet gives out none of its devices any more.
    """
    left = listing((*sorted(plugins.sockets), *sorted(plugins.resources)))
    if node is None:
        return NotApplicable(f"of a device plugin only {left} is seen, and whether one still runs is not known")
    if any(quantity != "0" for name, quantity in node.allocatable.items() if is_of_gpus(name)):
        return None
    return Finding(
        "no device plugin of NVIDIA's runs any more",
        evidence=f"{left} is left in {plugins.directory}; no process of one is there, and the node gives out no GPU",
        remedy=Remedy(RepairAction.CONFIGURE, "deploy it again, or see with kubectl why its pod is gone"),
    )


def _ends(plugins: DevicePlugins) -> Finding:
    pod = max(plugins.plugin_pods, key=lambda one: one.restarts or 0)
    says = f'; the last of its log about it: "{plugins.said}"' if plugins.said else ""
    return Finding(
        "the device plugin does not run",
        evidence=f"/var/log/pods: {pod.pod}, container {pod.container}, started again {pod.restarts or 0} times; "
        f"no process of it is there{says}",
        remedy=Remedy(RepairAction.SUPPORT, LOGS),
    )


@check(
    "k8s.runtimeclass",
    Severity.ERROR,
    title="the device plugin's own container was given the GPUs",
    reads="the device plugin's log; sockets in /var/lib/kubelet/device-plugins; the default runtime of the engine",
    remedy=Remedy(
        RepairAction.CONFIGURE, "runtimeClassName: nvidia in the plugin's DaemonSet, or nvidia as the default"
    ),
    needs=PLUGIN,
    mode="device-plugin",
)
def runtimeclass(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin sees no GPU: its container was started by runc, without the nvidia handler."""
    plugins = _plugins(host)
    if not plugins.here:
        return NotApplicable(NO_PLUGIN)
    if any(plugins.resources.values()):
        return None
    if plugins.said is None:
        return NotApplicable("the device plugin's log was not read, or says nothing of GPUs that it does not see")
    engines = _of_pods(host, context)
    defaults = {engine.effective_default for engine in engines}
    if not defaults or None in defaults:
        return NotApplicable("the engine did not say which runtime is its default")
    if defaults == {context.handler}:
        return NotApplicable(f"{context.handler} is the default runtime: something else hides the GPUs from the plugin")
    return Finding(
        "the device plugin's container was not given the GPUs",
        evidence=f'its log: "{plugins.said}"; the default runtime is {listing(sorted(map(str, defaults)))}',
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"give its pods runtimeClassName: {context.handler}, which its chart has, or make {context.handler} the "
            "default runtime",
        ),
        entities=unit(*(e.unit for e in engines if e.effective_default != context.handler)),
    )


def _of_pods(host: HostFacts, context: Context) -> list[RuntimeFacts]:
    """The engines that may run the node's pods."""
    from gpunode.engines.kubernetes.for_pods import may_run_pods

    return [engine for engine in wanted(host, context) if may_run_pods(engine)]


@check(
    "k8s.dp-socket",
    Severity.ERROR,
    title="the device plugin has a socket that this kubelet knows",
    reads="sockets in /var/lib/kubelet/device-plugins, and their age",
    remedy=Remedy(RepairAction.SUPPORT, f"{LOGS}; {RESTART}"),
    needs=PLUGIN,
    mode="device-plugin",
)
def dp_socket(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin has made no socket, or has not noticed that the kubelet started anew: it is not registered."""
    plugins = _plugins(host)
    if not plugins.here:
        return NotApplicable(NO_PLUGIN)
    if any(plugins.sockets.values()):
        return None
    if plugins.sockets:
        evidence = f"{plugins.directory}: {listing(sorted(plugins.sockets))} is older than kubelet.sock"
        remedy = Remedy(RepairAction.CONFIGURE, RESTART)
        return Finding("the device plugin has not registered since the kubelet started", evidence, remedy)
    says = f'; its log: "{plugins.said}"' if plugins.said else ""
    return Finding(
        "the device plugin is here, and has made no socket",
        evidence=f"{plugins.directory} has no socket of NVIDIA's{says}",
        remedy=Remedy(RepairAction.SUPPORT, LOGS),
    )


@check(
    "k8s.dp-registered",
    Severity.ERROR,
    title="the kubelet knows all GPUs",
    reads="RegisteredDevices in the kubelet's checkpoint of device plugins; nvidia-smi -q -x",
    remedy=Remedy(RepairAction.SUPPORT, LOGS),
    needs=PLUGIN,
    mode="device-plugin",
)
def dp_registered(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet knows no GPU, or not all of them: the others are never given to a pod."""
    plugins = _plugins(host)
    if not plugins.here:
        return NotApplicable(NO_PLUGIN)
    if plugins.registered is None:
        return NotApplicable(f"{plugins.directory}/kubelet_internal_checkpoint was not read")
    ids = {device.partition("::")[0] for devices in plugins.resources.values() for device in devices}
    if not ids:
        return Finding(
            "the kubelet knows no GPU",
            evidence=f"{plugins.directory}/kubelet_internal_checkpoint: RegisteredDevices has no GPU",
            remedy=Remedy(RepairAction.SUPPORT, LOGS),
        )
    missing = _missing(host, ids)
    if missing is None:
        return NotApplicable("which GPUs the kubelet should know is not known: nvidia-smi did not list them")
    if not missing:
        return None
    return Finding(
        f"the kubelet does not know {listing(missing)}",
        evidence=f"RegisteredDevices of the kubelet has {len(ids)} healthy devices, without {listing(missing)}",
        remedy=Remedy(
            RepairAction.SUPPORT, f"{LOGS}: a device that it finds unhealthy (an Xid) is taken out; {RESTART}"
        ),
        severity=Severity.WARNING,
    )


def _missing(host: HostFacts, ids: set[str]) -> list[str] | None:
    """GPUs that no registered device is of, nor of a MIG instance of theirs; None: not known."""
    seen = host.driver.smi.gpus if host.driver.smi else ()
    if not any(name.startswith(("GPU-", "MIG-")) for name in ids):  # by index
        short = len(host.own_gpus) - len(ids)
        return [f"{short} of {len(host.own_gpus)} GPUs"] if short > 0 else []
    if not seen or any(gpu.uuid is None for gpu in seen):
        return None
    return [gpu.uuid for gpu in seen if gpu.uuid and gpu.uuid not in ids and not ids & set(gpu.mig_uuids)]


@check(
    "k8s.dp-version",
    Severity.WARNING,
    title="the device plugin is a release of these days",
    reads="the image with which the engine made the device plugin's container",
    remedy=Remedy(RepairAction.UPGRADE, "upgrade the device plugin's chart or manifest"),
    needs=PLUGIN,
    mode="device-plugin",
)
def dp_version(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin is an old release, without the fixes and the CDI of today's."""
    image = _plugins(host).image
    if image is None:
        return NotApplicable("the image of a running device plugin is not known")
    tag = _TAG.search(image)
    if tag is None:
        return NotApplicable(f"{image} does not say its version")
    beta = (tag[2] or "").startswith("-beta")  # 1.0.0-beta6 came before 0.6.0
    if not beta and at_least(tag[1], first_with("device-plugin", "current")):
        return None
    return Finding(
        f"the device plugin {tag[1]} is an old release",
        evidence=f"its image is {image}",
        remedy=Remedy(RepairAction.UPGRADE, "upgrade the device plugin's chart or manifest to its newest release"),
    )


@check(
    "k8s.podresources",
    Severity.WARNING,
    title="monitoring can ask the kubelet which pod has which GPU",
    reads="/var/lib/kubelet/pod-resources/kubelet.sock",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl restart kubelet, which makes it"),
    needs=PLUGIN,
)
def podresources(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet's socket for that is not there: dcgm-exporter cannot name the pods of its metrics."""
    if _plugins(host).pod_resources:
        return None
    if not at_least(host.kubernetes.version, first_with("kubelet", "pod-resources")):
        return NotApplicable("the kubelet is older than this API, or its version is not known")
    return Finding(
        "the kubelet has no socket of the PodResources API",
        evidence="pod-resources/kubelet.sock in the kubelet's directory is not there",
        remedy=Remedy(RepairAction.RESTART_SERVICE, f"{restart(host)}, which makes it; pods keep running"),
    )
