"""The node's object, where the API server told the kubelet's own identity about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gpunode.advice import listing
from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.k8s.start import log
from gpunode.checks.registry import Context, check
from gpunode.checks.words import PRUNE
from gpunode.model.facts import HostFacts
from gpunode.model.kubelet_program import kubelet_program
from gpunode.model.kubernetes import NodeFacts, gpu_counts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction

NODE = (needs.kubelet, needs.joined, needs.node, needs.gpu)
READS = "kubectl get node with the kubelet's own kubeconfig"
LEGACY = "alpha.kubernetes.io/nvidia-gpu"
# What relieves each. The kubelet collects images for DiskPressure alone (kubernetes.io, Node-pressure Eviction:
# memory.available and pid.available have nothing of the node's to reclaim); for that one as os.disk-root does.
PRESSURES: Mapping[str, str] = {
    "DiskPressure": PRUNE,
    "MemoryPressure": "ps -eo pid,rss,args --sort=-rss | head shows who has the memory: end it, or limit its pod",
    "PIDPressure": "systemd-cgtop -t shows who has so many processes and threads: end it, or set the kubelet's "
    "podPidsLimit",
}
# Kubernetes' own, which DaemonSets tolerate or which go away by themselves.
OWN_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "nvidia.com/gpu")


def _node(host: HostFacts) -> NodeFacts:
    return host.kubernetes.node or NodeFacts()


@check(
    "k8s.node-ready",
    Severity.ERROR,
    title="the node is ready and takes pods",
    reads=f"{READS}: its conditions, and whether it is cordoned",
    remedy=Remedy(RepairAction.SUPPORT, "kubectl describe node NODE shows why"),
    needs=NODE,
)
def node_ready(host: HostFacts, context: Context) -> CheckOutcome:
    """The node is not ready, or cordoned: no pod is scheduled to its GPUs."""
    node = _node(host)
    status, _, reason = node.conditions.get("Ready", "").partition(" ")
    if not status:
        return NotApplicable("the node has no condition Ready yet")
    if status != "True":
        return Finding(
            "the node is not ready",
            evidence=f"the node's object: Ready is {status} ({reason or 'no reason given'})",
            remedy=Remedy(RepairAction.SUPPORT, f"kubectl describe node NODE shows why; {log(host)} too"),
        )
    if node.unschedulable:
        return Finding(
            "the node is cordoned",
            evidence="the node's object: spec.unschedulable is true",
            remedy=Remedy(RepairAction.CONFIGURE, "kubectl uncordon NODE, once who cordoned it is done"),
            severity=Severity.WARNING,
        )
    return None


@check(
    "k8s.capacity",
    Severity.ERROR,
    title="the cluster can give out the node's GPUs",
    reads=f"{READS}: capacity and allocatable of GPUs",
    remedy=Remedy(RepairAction.SUPPORT, "look at the device plugin's log, and at health.xid-recent"),
    needs=NODE,
    mode="device-plugin",
)
def capacity(host: HostFacts, context: Context) -> CheckOutcome:
    """The node offers no GPU, or fewer than it has: pods wait with Insufficient nvidia.com/gpu."""
    node, plugins = _node(host), host.kubernetes.device_plugins
    has, gives = gpu_counts(node.capacity), gpu_counts(node.allocatable)
    if not any(has.values()):
        if plugins is None or not plugins.here:
            return NotApplicable("no device plugin of NVIDIA's is known to be on this node (k8s.dp-container)")
        return Finding(
            "the node offers no GPU",
            evidence="the node's object: capacity has no nvidia.com/gpu, or 0",
            remedy=Remedy(RepairAction.SUPPORT, "kubectl logs of the device plugin's pod shows why"),
        )
    fewer = sorted(name for name, count in has.items() if gives.get(name, 0) < count)
    if not fewer:
        return None
    return Finding(
        "the node gives out fewer GPUs than it has",
        evidence="the node's object: " + listing(f"{n} {has[n]}, allocatable {gives.get(n, 0)}" for n in fewer),
        remedy=Remedy(
            RepairAction.SUPPORT, "the device plugin found the others unhealthy: look at its log and the kernel's (Xid)"
        ),
        severity=Severity.ERROR if not any(gives.values()) else Severity.WARNING,
    )


@check(
    "k8s.legacy-resource",
    Severity.WARNING,
    title="the node offers no GPUs of the time before device plugins",
    reads=f"{READS}: capacity of {LEGACY}",
    remedy=Remedy(RepairAction.CONFIGURE, "ask for nvidia.com/gpu, and register the node anew"),
    needs=NODE,
)
def legacy_resource(host: HostFacts, context: Context) -> CheckOutcome:
    """The node's object has alpha.kubernetes.io/nvidia-gpu, which no kubelet since 1.11 gives out."""
    node, kubelet = _node(host), kubelet_program(host)
    if LEGACY not in node.capacity or node.capacity[LEGACY] == "0":
        return None
    if kubelet is None or not at_least(kubelet[1], first_with("kubelet", "no-alpha-gpus")):
        return NotApplicable("the kubelet is so old that it gives them out itself, or its version is not known")
    return Finding(
        f"the node still offers {LEGACY}",
        evidence=f"the node's object: capacity {LEGACY} {node.capacity[LEGACY]}; {kubelet[0]} is {kubelet[1]}",
        remedy=Remedy(RepairAction.CONFIGURE, "let pods ask for nvidia.com/gpu; drain the node and register it anew"),
    )


@check(
    "k8s.labels",
    Severity.WARNING,
    title="GPU Feature Discovery's labels say what the node has",
    reads=f"{READS}: labels below nvidia.com; PCI; the loaded driver",
    remedy=Remedy(RepairAction.CONFIGURE, "delete the pod of GPU Feature Discovery on this node"),
    needs=NODE,
)
def labels(host: HostFacts, context: Context) -> CheckOutcome:
    """The node's labels are of other GPUs or another driver than it has: pods are sent to it, or kept away, wrongly."""
    found = _node(host).labels
    known = dict(_known(host, found))
    if not known:
        return NotApplicable("GPU Feature Discovery has set no label here that can be compared")
    wrong = [
        f"{name} is {found[name]}, not {listing(right, between=' or ')}"
        for name, right in known.items()
        if found[name] not in right
    ]
    if not wrong:
        return None
    return Finding(
        "the node's labels are of another GPU or driver",
        evidence=f"the node's object: {listing(wrong, between='; ')}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "delete the pod of GPU Feature Discovery on this node, which sets them anew; without it, remove them",
        ),
    )


def _known(host: HostFacts, labels: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What labels that are there may be. The count is that of a model, of any where there are several; with MIG it is
    that of instances.
    """
    gpus = host.driver.smi.gpus if host.driver.smi and host.driver.smi.answered else ()
    models = Counter(gpu.name for gpu in gpus if gpu.name)
    mig = any(gpu.mig_mode == "Enabled" for gpu in gpus)
    counts = () if mig else tuple(sorted({str(count) for count in models.values()}))
    expected = {"nvidia.com/gpu.count": counts} if counts else {}
    if host.driver.loaded:
        expected["nvidia.com/cuda.driver-version.full"] = (host.driver.loaded,)
    return {name: right for name, right in expected.items() if name in labels}


@check(
    "k8s.taints",
    Severity.WARNING,
    title="no taint keeps the device plugin away",
    reads=f"{READS}: taints; /var/log/pods",
    remedy=Remedy(RepairAction.CONFIGURE, "add a toleration to the device plugin's DaemonSet"),
    needs=(*NODE, needs.device_plugins),
)
def taints(host: HostFacts, context: Context) -> CheckOutcome:
    """The node has a taint of its own, and no device plugin: its manifest tolerates nvidia.com/gpu alone."""
    plugins = host.kubernetes.device_plugins
    if plugins is not None and plugins.here:
        return None
    keys = [taint.partition(" ")[2] for taint in _node(host).taints if not taint.startswith("PreferNoSchedule ")]
    own = sorted({key for key in keys if key and not key.startswith(OWN_TAINTS)})
    if not own:
        return None
    return Finding(
        f"the taint {own[0]} may keep the device plugin away",
        evidence=f"the node's object has {listing(own)}, and no device plugin is on the node",
        remedy=Remedy(RepairAction.CONFIGURE, f"add a toleration of {listing(own)} to the device plugin's DaemonSet"),
    )


@check(
    "k8s.eviction-pressure",
    Severity.ERROR,
    title="the kubelet evicts no pods",
    reads=f"{READS}: DiskPressure, MemoryPressure and PIDPressure",
    remedy=Remedy(
        RepairAction.CONFIGURE, "make room on the disk, or end what takes the memory or the processes: as it says"
    ),
    needs=NODE,
)
def eviction_pressure(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet is short of disk, memory or processes: it takes no pods, and evicts those that are there."""
    conditions = _node(host).conditions
    known = {name: conditions[name] for name in PRESSURES if name in conditions}
    if not known:
        return NotApplicable("the node has no conditions of this kind")
    under = {name: status.partition(" ")[2] for name, status in known.items() if status.startswith("True")}
    if not under:
        return None
    return Finding(
        f"the kubelet is under {listing(under)}",
        evidence="the node's object: " + listing(f"{name} ({reason})" for name, reason in under.items()),
        remedy=Remedy(RepairAction.CONFIGURE, "; ".join(PRESSURES[name] for name in under)),
    )
