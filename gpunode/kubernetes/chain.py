"""From the engine to the cluster: what has to be there, one after the other, before a pod gets a GPU of this node.

Each link is looked for in the facts by itself. A link that is not there has the finding of a check as its cause, where
one has found it: the checks know many, and a link knows only that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from gpunode.advice import listing
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubernetes import GPU_DRA_DRIVER, gpu_counts
from gpunode.model.pod_trial import PodTrial
from gpunode.model.report import CheckReport, Finding
from gpunode.values import dataclass

POD = "pod"
MIRROR_PODS = "NodeRestriction: mirror pods alone"
RIGHTS = "create, get and delete pods and get pods/log in the namespace default"
LinkState = Literal["ok", "missing", "unknown", "not reached"]


@dataclass(frozen=True)
class Link:
    name: str  # "checkpoint"
    state: LinkState
    says: str  # what was seen; of an unknown one why that is; of one that is not reached, what comes before it
    cause: str | None = None  # the check whose finding says why it is missing
    finding: Finding | None = None  # that finding


class Seen(NamedTuple):
    there: bool | None  # None: not known
    says: str


@dataclass(frozen=True)
class _Step:
    name: str
    look: Callable[[HostFacts, Sequence[RuntimeFacts], str], Seen]
    breaks: tuple[str, ...]  # checks whose findings break this link even where it was seen
    others: tuple[str, ...] = ()  # checks that may say why it was not seen


def chain(host: HostFacts, engines: Sequence[RuntimeFacts], report: CheckReport, handler: str) -> tuple[Link, ...]:
    """`engines`: those that may run the kubelet's pods. Raises UnsupportedHost where no device plugin is to be."""
    _refuse(host)
    links: list[Link] = []
    for step in STEPS:
        before = next((one.name for one in links if one.state == "missing"), None)
        links.append(_link(step, step.look(host, engines, handler), report.findings, before))
    return tuple(links)


UNSEEN = "Unknown"  # nobody could say what became of it: the kubelet's own word for it, too


def pod_link(trial: PodTrial) -> Link:
    """What a pod that was started on the node showed."""
    last = f"; its last line: {trial.log[-1]}" if trial.log else ""
    left = f"; it may still be there, kubectl delete pod {trial.name} ({trial.left})" if trial.left else ""
    swept = f"; deleted {listing(trial.swept)}, left by an earlier test" if trial.swept else ""
    says = f"{trial.phase}{f' ({trial.says})' if trial.says else ''}{last}{left}{swept}"
    if not trial.phase:
        return Link(POD, "unknown", f"{_not_made(trial)}{left}{swept}")
    if trial.phase == "Succeeded":
        return Link(POD, "unknown" if trial.left else "ok", says)
    # The kubelet's words for a pod that was bound to it and finds no device free: that says nothing of the node.
    busy = trial.says.startswith("OutOf") or "requested number of devices unavailable" in trial.says
    return Link(POD, "unknown" if busy or trial.phase == UNSEEN else "missing", says)


def _not_made(trial: PodTrial) -> str:
    if trial.no_kubeconfig:
        return (
            f"no kubeconfig on this host may create pods, and the kubelet's own may not ({MIRROR_PODS}); name one with "
            f"--host-kubeconfig, or one of yours with --kubeconfig, that may {RIGHTS}; or pipe gpunode k8s pod into a "
            "kubectl that may"
        )
    return f"it was not made: {trial.says}{_why_refused(trial.says)}"


def _why_refused(says: str) -> str:
    """What a 403 asks for: admission says that word too, of quotas, PodSecurity and what a pod names."""
    if " cannot " in says or "can only " in says:
        return f": it takes the rights to {RIGHTS}"
    if "RuntimeClass" in says and "not found" in says:
        return "; gpunode k8s device-plugin --runtime-class prints the object"
    return ""


def _refuse(host: HostFacts) -> None:
    if not host.gpus and "pci" not in host.unread:
        raise UnsupportedHost("no NVIDIA GPU is on the PCI bus: there is nothing to give to pods")
    if not (host.kubernetes.kubelet or any(one.embedded_in for one in host.runtimes)):
        raise UnsupportedHost("no kubelet: Kubernetes is not on this host", remedy="name a node of a cluster")
    plugins = host.kubernetes.device_plugins
    if plugins and GPU_DRA_DRIVER in plugins.dra and not plugins.here:
        raise UnsupportedHost(
            f"a DRA driver ({GPU_DRA_DRIVER}) hands out the GPUs of this node: this chain is a device plugin's",
            remedy="kubectl get resourceslices shows what the driver offers",
        )


def _link(step: _Step, seen: Seen, findings: Mapping[str, Finding], before: str | None) -> Link:
    first = next((id for id in (step.breaks if seen.there else step.breaks + step.others) if id in findings), None)
    if seen.there and first is None:
        return Link(step.name, "ok", seen.says)
    if before is not None:
        return Link(step.name, "not reached", f"{before} is missing")
    if first is None:
        return Link(step.name, "unknown" if seen.there is None else "missing", seen.says)
    root = _root(first, findings)
    return Link(step.name, "missing", seen.says, root, findings[root])


def _root(id: str, findings: Mapping[str, Finding]) -> str:
    """The finding that explains this one and is explained by none."""
    passed = {id}
    while (cause := findings[id].cause) is not None and cause in findings and cause not in passed:
        passed.add(cause)
        id = cause
    return id


def _handler(host: HostFacts, engines: Sequence[RuntimeFacts], handler: str) -> Seen:
    """In the running daemon: what its file says counts from its next start on."""
    if not engines:
        return Seen(None, "no engine that may run the kubelet's pods is known to run")
    silent = [one for one in engines if not one.handlers and one.effective_default is None]
    if silent:
        return Seen(None, f"{listing(one.label for one in silent)} did not say which handlers it has")
    have = [one for one in engines if handler in (*one.handlers, one.effective_default) or one.nvidia_by_default]
    if have and len(have) < len(engines):
        names = listing(one.label for one in engines)
        return Seen(
            None,
            f"only {listing(one.label for one in have)} has {handler}, and which of {names} runs the pods is not known",
        )
    told = (f"{one.label} has {listing(one.handlers or ('none',))}, default {one.effective_default}" for one in engines)
    return Seen(bool(have), "; ".join(told))


def _socket(host: HostFacts, engines: Sequence[RuntimeFacts], handler: str) -> Seen:
    if not host.kubernetes.joined:
        return Seen(False, "the kubelet has not joined a cluster: it has no kubeconfig")
    if not host.kubernetes.running:
        return Seen(False, "the kubelet does not run")
    plugins = host.kubernetes.device_plugins
    if plugins is None:
        return _not_read(host)
    if not plugins.sockets:
        return Seen(False, f"{plugins.directory} has no socket of NVIDIA's")
    if not any(plugins.sockets.values()):
        return Seen(False, f"{plugins.directory}: {listing(sorted(plugins.sockets))} is older than kubelet.sock")
    new = sorted(name for name, after in plugins.sockets.items() if after)
    return Seen(True, f"{plugins.directory}/{listing(new)}, made after kubelet.sock")


def _checkpoint(host: HostFacts, engines: Sequence[RuntimeFacts], handler: str) -> Seen:
    plugins = host.kubernetes.device_plugins
    if plugins is None:
        return _not_read(host)
    if plugins.registered is None:
        return Seen(None, f"{plugins.directory}/kubelet_internal_checkpoint was not read")
    counts = {name: len(ids) for name, ids in plugins.resources.items() if ids}
    where = "RegisteredDevices of kubelet_internal_checkpoint"
    return Seen(bool(counts), f"{where}: {_counted(counts) or 'no GPU'}")


def _node(host: HostFacts, engines: Sequence[RuntimeFacts], handler: str) -> Seen:
    """As the API server gave it to the kubelet's own identity, which may read its node."""
    node = host.kubernetes.node
    if node is None:
        return Seen(None, f"the node's object is not known: {host.unread.get('node', 'the API server was not asked')}")
    has, gives = gpu_counts(node.capacity), gpu_counts(node.allocatable)
    if not any(has.values()):
        return Seen(False, "the node's capacity has no nvidia.com/gpu, or 0")
    all_given = all(gives.get(name, 0) >= count for name, count in has.items())
    return Seen(all_given, f"capacity {_counted(has)}; allocatable {_counted(gives) or 'nothing'}")


def _not_read(host: HostFacts) -> Seen:
    return Seen(None, "the kubelet's directory was not read" + ("" if host.root else ": that needs root"))


def _counted(counts: Mapping[str, int]) -> str:
    return listing(f"{name} {count}" for name, count in sorted(counts.items()))


STEPS = (
    _Step(
        "handler",
        _handler,
        ("rt.handler-binary",),
        (
            "rt.present",
            "rt.cri-disabled",
            "rt.containerd-live",
            "rt.containerd-file",
            "rt.crio",
            "rt.k3s",
            "rt.docker-live",
            "rt.docker-file",
            "ctk.installed",
        ),
    ),
    _Step(
        "socket", _socket, ("k8s.kubelet-up", "k8s.dp-dir", "k8s.dp-container"), ("k8s.runtimeclass", "k8s.dp-socket")
    ),
    _Step(
        "checkpoint",
        _checkpoint,
        ("k8s.dp-registered",),
        ("k8s.sharing-config", "mig.uniform", "mig.mixed-with-mps", "k8s.runtimeclass"),
    ),
    _Step("allocatable", _node, ("k8s.node-ready", "k8s.eviction-pressure", "k8s.capacity")),
)
