"""The engine that runs the pods: dockershim, versions of CRI, and who says the cgroup driver."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.catalog.versions import first_with, threshold
from gpunode.checks.upgrade.values import Effect, Upgrade
from gpunode.engines.containerd.cgroup_driver import GATE, asks_from
from gpunode.model.facts import RuntimeFacts
from gpunode.model.versions import at_least, written
from gpunode.remedy import Remedy, RepairAction

NEWER = "upgrade {} to a release that gets fixes, before the kubelet"


def dockershim(upgrade: Upgrade) -> Iterator[Effect]:
    """The kubelet starts its pods with docker itself, which kubelets before 1.24 do."""
    from gpunode.engines.docker import dockershim as shim

    row = threshold("kubelet", "no-docker")
    since = row.release
    if not upgrade.comes(since) or not shim.runs_pods(upgrade.host):
        return
    told = (upgrade.host.kubernetes.settings and upgrade.host.kubernetes.settings.container_runtime) or "not set"
    yield Effect(
        "stops",
        "dockershim",
        f"{upgrade.later} has no dockershim: docker runs this node's pods",
        f"--container-runtime is {told}, which means docker before {written(since)}, and docker is here",
        since,
        Remedy(
            RepairAction.CONFIGURE,
            "before the upgrade drain the node and move it to containerd (its CRI on; --container-runtime-endpoint for "
            "the kubelet, and --container-runtime=remote before 1.27), or put cri-dockerd in front of docker",
        ),
        row.source,
    )


def no_engine_known(upgrade: Upgrade) -> Iterator[Effect]:
    """Which engine runs the pods decides whether a later kubelet works with it."""
    since = threshold("kubelet", "no-docker").release
    if upgrade.embedded or not upgrade.has(since):
        return
    if not upgrade.engines:
        yield Effect("unknown", "engine", "which engine runs the pods", _why_none(upgrade), since)
    for engine in upgrade.engines:
        if engine.version is None:
            said = f"the version of {engine.label} is not known"
            yield Effect("unknown", "engine", f"whether {upgrade.later} works with {engine.label}", said, since)


def _why_none(upgrade: Upgrade) -> str:
    asked = [one for one in upgrade.told.flag("container-runtime-endpoint") if one.value]
    if not asked:
        return "none that may is known to run"
    return f"{asked[-1].where} has --container-runtime-endpoint={asked[-1].value}, behind which no known engine runs"


def no_cri_v1(upgrade: Upgrade) -> Iterator[Effect]:
    """containerd before 1.6 speaks a version of CRI alone that kubelets from 1.26 on do not."""
    from gpunode.engines.containerd.cri_version import speaks_cri_v1
    from gpunode.engines.containerd.engine import Containerd

    row, first = threshold("kubelet", "cri-v1-only"), threshold("containerd", "cri-v1")
    since = row.release
    for engine in upgrade.engines if upgrade.has(since) else ():
        if engine.name == Containerd.name and speaks_cri_v1(engine) is False:
            yield Effect(
                "stops",
                "cri-version",
                f"{upgrade.later} does not work with {engine.label} {engine.version}",
                f"it speaks CRI v1 alone, and containerd has that from {first.since} on{upgrade.already(since)}",
                since,
                Remedy(RepairAction.UPGRADE, NEWER.format(engine.label)),
                row.source,
            )


def no_runtime_config(upgrade: Upgrade) -> Iterator[Effect]:
    """An engine that does not say its cgroup driver: kubeadm warns of it, and then the kubelet is not to start."""
    stop, warn = threshold("kubelet", "needs-runtime-config"), threshold("kubeadm", "warns-without-runtime-config")
    for engine in upgrade.engines:
        first, tells = _told_driver(engine) or ("", True)
        if tells:
            continue
        seen = f"{engine.label} is {engine.version}, and tells the kubelet its cgroup driver from {first} on"
        remedy = Remedy(RepairAction.UPGRADE, f"upgrade {engine.label} to {first} or later, before the kubelet")
        if upgrade.has(stop.release):
            said = f"{upgrade.later} is not to start with {engine.label} {engine.version}"
            own = f"{seen}; the kubelet's own cgroupDriver, which stood in for it, goes"
            yield Effect("stops", "runtime-config", said, own, stop.release, remedy, stop.source)
        elif upgrade.host.kubernetes.distribution == "kubeadm" and upgrade.comes(warn.release):
            said = f"kubeadm warns of {engine.label} {engine.version}"
            later = f"{seen}; from {stop.since} on the kubelet is not to start without that"
            yield Effect("changes", "runtime-config", said, later, warn.release, remedy, warn.source)


def cgroup_driver(upgrade: Upgrade) -> Iterator[Effect]:
    """From 1.31 on the kubelet takes its cgroup driver from the engine's default runtime, whatever it is told."""
    row, gates = threshold("kubelet", "cgroup-driver-from-cri"), [o.on for o in upgrade.told.gates if o.name == GATE]
    since, own = asks_from(gates[-1] if gates else None), upgrade.host.kubernetes.kubelet_cgroup_driver
    for engine in upgrade.engines if upgrade.comes(since) else ():
        _, tells = _told_driver(engine) or ("", False)
        if not tells:
            continue
        default = engine.effective_default
        value = engine.systemd_cgroup.get(default or "")
        taken = {True: "systemd", False: "cgroupfs", None: None}[value]
        if taken and taken == own:
            continue
        seen = f"{engine.label} {engine.version}: its default runtime {default or '(not known)'} has SystemdCgroup "
        seen += f"{'not known' if value is None else str(value).lower()}; cgroupDriver of the kubelet is "
        yield Effect(
            "changes" if taken and own else "unknown",
            "cgroup-driver",
            f"{upgrade.later} takes {taken} from {engine.label}, and its own {own} is ignored"
            if taken and own
            else f"whether the cgroup driver that {upgrade.later} takes from {engine.label} is its own",
            seen + (own or "not known"),
            since,
            Remedy(
                RepairAction.CONFIGURE,
                f"drain the node; set SystemdCgroup of {default or 'the default runtime'} as the pods' cgroups are to "
                "be (systemd: true), and restart the engine before the kubelet",
            ),
            row.source,
        )


def _told_driver(engine: RuntimeFacts) -> tuple[str, bool] | None:
    """The first version that tells the kubelet its cgroup driver by CRI, and whether this is one; None: not known."""
    from gpunode.engines.containerd.engine import Containerd
    from gpunode.engines.crio import Crio

    if engine.version is None or engine.name not in (Containerd.name, Crio.name):
        return None
    if engine.name == Crio.name:
        since = threshold("crio", "cri-runtime-config")
        return since.since, at_least(engine.version, first_with("crio", "cri-runtime-config"))
    since = threshold("containerd", "cri-runtime-config")
    return since.since, at_least(engine.version, first_with("containerd", "cri-runtime-config"))
