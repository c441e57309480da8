"""Does the kubelet run, and would it start again?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpunode.advice import listing, typed
from gpunode.catalog.node_labels import kubelet_may_set
from gpunode.catalog.runtimes import kubernetes_distribution, kubernetes_distributions
from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.k8s.start_rules import NO_SWAP, UNIFIED, starts_on_its_cgroups, taken_out, to_v2
from gpunode.checks.registry import Context, check
from gpunode.model import entities
from gpunode.model.facts import HostFacts
from gpunode.model.kubelet_program import kubelet_program
from gpunode.model.kubernetes import KUBELET_UNIT, KubeletSettings, Told
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import at_least, release
from gpunode.remedy import Remedy, RepairAction

NO_VERSION = "the version of the kubelet is not known"
PLACES = "its configuration, /etc/default/kubelet or /etc/sysconfig/kubelet, kubeadm-flags.env, or kubelet-arg"
RUNS = ("active", "reloading")


@check(
    "k8s.cgroup-v1",
    Severity.WARNING,
    title="the kubelet starts on this cgroup hierarchy",
    reads="/proc/mounts; the versions of the kubelet's package and of Kubernetes distributions; failCgroupV1",
    remedy=Remedy(RepairAction.CONFIGURE, UNIFIED),
    needs=(needs.kubelet, needs.gpu),
)
def cgroup_v1(host: HostFacts, context: Context) -> CheckOutcome:
    """The host is on cgroup v1, where a kubelet from 1.35 on does not start."""
    from gpunode.engines.kubernetes.kubelet_told import told

    if host.cgroup is None:
        return NotApplicable("the cgroup hierarchy is not known")
    kubelet = kubelet_program(host)
    if kubelet is None:
        return None if starts_on_its_cgroups(host) else NotApplicable(NO_VERSION)
    name, version = kubelet
    if starts_on_its_cgroups(host, version):
        return None
    if host.kubernetes.running and not told(host).settings_known:
        return NotApplicable(f"{name} {version} runs on cgroup v1; failCgroupV1 in its configuration was not read")
    return Finding(
        f"{name} {version} does not start on cgroup v1",
        evidence=f"/proc/mounts: /sys/fs/cgroup is {host.cgroup}; from 1.35 on failCgroupV1 is true unless it is set",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"move to cgroup v2 ({to_v2(host)}), or set failCgroupV1: false in the kubelet's configuration",
        ),
        entities=entities.unit(unit_of(host)),
    )


@check(
    "k8s.kubelet-up",
    Severity.ERROR,
    title="the kubelet runs",
    reads="its process; systemctl show of kubelet.service and of the units of Kubernetes distributions",
    remedy=Remedy(RepairAction.SUPPORT, "journalctl -b -u kubelet.service shows what it ends with"),
    needs=(needs.kubelet, needs.joined, needs.gpu),
)
def kubelet_up(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet does not run, or ends over and over: the node takes no pods, and its GPUs are not offered.

    Before it has joined a cluster it ends over and over until it does, and nothing is wrong.
    """
    name = unit_of(host)
    state = host.services.get(name)
    if state is None or state.load == "not-found":
        return (
            None if host.kubernetes.running else NotApplicable("no unit of a kubelet was read, and no process is there")
        )
    if state.active in RUNS and (host.kubernetes.running or not _started_over(host)):
        seen = host.kubernetes.running
        return None if seen else NotApplicable(f"{name} is active, and no process of a kubelet was seen")
    if state.active == "inactive" and state.enabled in ("disabled", "masked"):
        return NotApplicable(f"{name} is {state.enabled}: somebody switched it off")
    return Finding(
        "the kubelet does not run",
        evidence=f"{name}: ActiveState {state.active}, SubState {state.sub}"
        + ("" if host.kubernetes.running else "; no process of it is there"),
        remedy=Remedy(RepairAction.SUPPORT, f"{log(host)} shows what it ends with"),
        entities=entities.unit(name),
    )


def unit_of(host: HostFacts) -> str:
    """The unit that runs the kubelet, or that it has by itself."""
    return _unit(host) or KUBELET_UNIT


def restart(host: HostFacts) -> str:
    """What starts the kubelet of this host anew: "systemctl restart k3s-agent.service"."""
    return typed("systemctl", "restart", unit_of(host))


def log(host: HostFacts) -> str:
    """What shows its log since the boot: "journalctl -b -u k3s-agent.service"."""
    return typed("journalctl", "-b", "-u", unit_of(host))


def _unit(host: HostFacts) -> str | None:
    """The unit that runs the kubelet."""
    kubelet = host.services.get(KUBELET_UNIT)
    if kubelet is not None and kubelet.load != "not-found":
        return KUBELET_UNIT
    engine = next((engine for engine in host.runtimes if engine.embedded_in), None)
    if engine is None:
        return None
    units = (*kubernetes_distribution(engine.name).kubelet_units, engine.unit)
    return next((unit for unit in units if unit in host.services), None)


def _started_over(host: HostFacts) -> bool:
    """A distribution runs that starts its kubelet as a process of its own: with its containerd comes its kubelet."""
    return any(one.embedded_in and one.pid for one in host.runtimes)


def _where(host: HostFacts) -> str:
    """Where people tell this kubelet something."""
    return next((d.kubelet_args for d in kubernetes_distributions() if d.name == host.kubernetes.distribution), PLACES)


@check(
    "k8s.feature-gates",
    Severity.ERROR,
    title="the kubelet knows its feature gates",
    reads="feature gates of the kubelet's flags and configuration; its version; catalog/feature_gates.yaml",
    remedy=Remedy(RepairAction.CONFIGURE, f"take them out of {PLACES}"),
    needs=(needs.kubelet, needs.settings, needs.gpu),
)
def feature_gates(host: HostFacts, context: Context) -> CheckOutcome:
    """A feature gate is set that this kubelet does not know, or that is locked: it does not start with it."""
    from gpunode.engines.kubernetes.kubelet_told import told

    settings, kubelet = host.kubernetes.settings or KubeletSettings(), kubelet_program(host)
    if kubelet is None:
        return NotApplicable(NO_VERSION)
    gates = told(host).gates
    dead = list(_dead(gates, release(kubelet[1]) or (0, 0)))
    if not dead:
        return NotApplicable(f"{settings.unread} was not read") if settings.unread else None
    names = [name for name, _ in dead]
    places = [one for one in gates if one.name in names]
    where = sorted({one.where for one in places})
    return Finding(
        f"{kubelet[0]} {kubelet[1]} does not start with {listing(names)}",
        evidence=listing((f"{name} {why}" for name, why in dead), between="; ")
        + (f" ({listing(where)})" if where else ""),
        remedy=taken_out(listing(names), places, _where(host)),
        entities=entities.unit(unit_of(host)),
    )


def _dead(gates: Iterable[Told], version: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Feature gates with which this kubelet does not start, and why; each once."""
    from gpunode.catalog.feature_gates import why_refused

    found = {one.name: why for one in gates if (why := why_refused(one.name, version, on=one.on))}
    yield from sorted(found.items())


@check(
    "k8s.kubelet-version",
    Severity.ERROR,
    title="kubelet and containerd speak one version of CRI",
    reads="versions of the kubelet and of containerd",
    remedy=Remedy(RepairAction.UPGRADE, "upgrade containerd to 1.7 or later"),
    needs=(needs.kubelet, needs.gpu),
)
def kubelet_version(host: HostFacts, context: Context) -> CheckOutcome:
    """containerd has no CRI v1, which is the only version that this kubelet speaks: the node does not register."""
    from gpunode.engines.containerd.cri_version import speaks_cri_v1
    from gpunode.engines.containerd.engine import Containerd

    kubelet, engine = kubelet_program(host), host.runtime(Containerd.name)
    if kubelet is None:
        return NotApplicable(NO_VERSION)
    if any(e.embedded_in for e in host.runtimes):
        return NotApplicable(f"{kubelet[0]} brings the containerd that fits it")
    speaks = speaks_cri_v1(engine) if engine else None
    if engine is None or speaks is None:
        return NotApplicable("no containerd, or its version is not known")
    if speaks or not at_least(kubelet[1], first_with("kubelet", "cri-v1-only")):
        return None
    return Finding(
        f"kubelet {kubelet[1]} does not work with containerd {engine.version}",
        evidence="the kubelet speaks CRI v1 alone from 1.26 on, and containerd has it from 1.6 on",
        remedy=Remedy(
            RepairAction.UPGRADE, "upgrade containerd to a release that gets fixes, then restart the kubelet"
        ),
        entities=entities.unit(engine.unit),
    )


@check(
    "k8s.labels-legacy",
    Severity.ERROR,
    title="the kubelet sets only labels that it may set",
    reads="--node-labels of the kubelet; its version; the node's labels",
    remedy=Remedy(
        RepairAction.CONFIGURE, f"take them out of --node-labels in {PLACES}; GPU Feature Discovery sets its own"
    ),
    needs=(needs.kubelet, needs.settings, needs.gpu),
)
def labels_legacy(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet is told to set labels such as alpha.kubernetes.io/nvidia-gpu-name: from 1.16 on it does not start."""
    from gpunode.engines.kubernetes.kubelet_told import told

    settings, kubelet = host.kubernetes.settings or KubeletSettings(), kubelet_program(host)
    if kubelet is None:
        return NotApplicable(NO_VERSION)
    told_labels = (pair for one in told(host).flag("node-labels") for pair in one.value.split(","))
    labels = dict.fromkeys((*settings.node_labels, *(pair.partition("=")[0] for pair in told_labels if pair)))
    refused = [label for label in labels if not kubelet_may_set(label, release(kubelet[1]))]
    if refused:
        return Finding(
            f"{kubelet[0]} {kubelet[1]} does not start with the label {refused[0]}",
            evidence=f"--node-labels has {listing(refused)}: below kubernetes.io it may set its own labels alone",
            remedy=_without_labels(host, listing(refused)),
            entities=entities.unit(unit_of(host)),
        )
    old = [label for label in (host.kubernetes.node.labels if host.kubernetes.node else ()) if "nvidia-gpu" in label]
    if old and old[0].startswith("alpha.kubernetes.io/"):
        return Finding(
            f"the node still has the label {old[0]}",
            evidence=f"the node's object: {old[0]}; nothing keeps it up to date",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"select nodes by nvidia.com/gpu.product; then kubectl label node NODE {old[0]}-",
            ),
            severity=Severity.WARNING,
        )
    return None


def _without_labels(host: HostFacts, labels: str) -> Remedy:
    from gpunode.engines.kubernetes.kubelet_told import told

    out = taken_out(labels, told(host).flag("node-labels"), f"--node-labels in {_where(host)}")
    return Remedy(out.action, *out.parts, "; select nodes by nvidia.com/gpu.product, which GPU Feature Discovery sets")


@check(
    "k8s.swap",
    Severity.ERROR,
    title="swap does not keep the kubelet from starting",
    reads="/proc/swaps; failSwapOn of the kubelet",
    remedy=Remedy(RepairAction.CONFIGURE, NO_SWAP),
    needs=(needs.kubelet, needs.gpu, needs.system),
)
def swap(host: HostFacts, context: Context) -> CheckOutcome:
    """Swap is on, and the kubelet does not start with it; one that runs was started before it was switched on."""
    unit, used = host.services.get(KUBELET_UNIT), host.system.swap if host.system else None
    if unit is None or unit.load == "not-found":
        return NotApplicable("no unit of a kubelet; a Kubernetes distribution's starts with swap")
    if used is None:
        return NotApplicable("/proc/swaps was not read")
    if not used or host.kubernetes.starts_with_swap:
        return None
    settings = host.kubernetes.settings
    if host.kubernetes.starts_with_swap is None or (unit.active in RUNS and (settings is None or settings.unread)):
        return NotApplicable("swap is on; failSwapOn of the kubelet was not read")
    again = "again " if unit.active in RUNS else ""
    return Finding(
        f"swap is on, and the kubelet does not start {again}with it",
        evidence=f"/proc/swaps: {listing(used)}; {KUBELET_UNIT} is {unit.active}, failSwapOn is not false",
        remedy=Remedy(RepairAction.CONFIGURE, NO_SWAP),
        severity=Severity.WARNING if again else None,
    )
