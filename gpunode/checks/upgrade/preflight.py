"""The order of it all: what on this node stops or changes the kubelet at an upgrade."""

from __future__ import annotations

from dataclasses import replace

from gpunode.catalog.feature_gates import listed_to
from gpunode.catalog.versions import thresholds
from gpunode.checks import needs
from gpunode.checks.upgrade import engines, gpus, system, told, unknown
from gpunode.checks.upgrade.notes import notes
from gpunode.checks.upgrade.values import STATES, Judgement, Preflight, Upgrade
from gpunode.engines.kubernetes.pod_engines import pod_engines
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubelet_program import kubelet_program
from gpunode.model.kubernetes import KubeletSettings, KubeletTold
from gpunode.model.versions import Release, release, written

JUDGEMENTS: tuple[Judgement, ...] = (
    told.dead_gates,
    told.gone_flags,
    told.fatal_labels,
    system.cgroup_v1,
    system.swap,
    engines.dockershim,
    engines.no_cri_v1,
    engines.no_runtime_config,
    engines.cgroup_driver,
    gpus.alpha_gpus,
    unknown.version_unknown,
    unknown.told_unknown,
    unknown.gates_unknown,
    engines.no_engine_known,
)


def newest_release() -> Release:
    """(1, 38): of no later one is anything known."""
    return max(listed_to(), *(row.release for (of, _), row in thresholds().items() if of == "kubelet"))


def preflight(host: HostFacts, to: Release) -> Preflight:
    """Raises UnsupportedHost where there is no kubelet, or none that could be upgraded to that release."""
    upgrade = upgrade_of(host, to)
    found = [effect for judge in JUDGEMENTS for effect in judge(upgrade)]
    found.sort(key=lambda one: (STATES.index(one.state), one.since or (0, 0)))
    return Preflight(upgrade, tuple(found), tuple(notes(upgrade)))


def upgrade_of(host: HostFacts, to: Release) -> Upgrade:
    from gpunode.engines.kubernetes.kubelet_told import told as told_of

    if why := needs.kubelet(host):
        raise UnsupportedHost(why, remedy="name a node of a cluster")
    embedded = _embeds(host)
    name, version = kubelet_program(host) or ("kubelet", None)
    name = (host.kubernetes.distribution or name) if embedded else name
    now = release(version)
    if now and to < now:
        raise UnsupportedHost(
            f"{name} {version} is newer than {written(to)}",
            evidence="what an upgrade changes is looked at, and not what an older release does not have yet",
            remedy=f"--to names a release from {written(now)} on",
        )
    known = told_of(host)
    host = _as_told(host, known)
    running = () if embedded else _asked_by(known, pod_engines(host))
    return Upgrade(host, name, version, now, to, known, running, embedded)


def _asked_by(known: KubeletTold, running: tuple[RuntimeFacts, ...]) -> tuple[RuntimeFacts, ...]:
    """Of several the one behind --container-runtime-endpoint; () where that is another's socket (cri-dockerd)."""
    told = [one.value for one in known.flag("container-runtime-endpoint") if one.value]
    if not told:
        return running
    path = told[-1].removeprefix("unix://").replace("/var/run/", "/run/", 1)
    return tuple(one for one in running if one.socket.replace("/var/run/", "/run/", 1) == path)


def _as_told(host: HostFacts, known: KubeletTold) -> HostFacts:
    """With what only a file says: the probe asks a kubelet's own command line, and a distribution has none."""
    now = host.kubernetes
    settings = now.settings
    if settings is None and known.settings_known:
        runtime = next((one.value for one in reversed(known.flag("container-runtime"))), None)
        settings = KubeletSettings(container_runtime=runtime)
    v1, with_swap = (_is_off(known, flag) for flag in ("fail-cgroupv1", "fail-swap-on"))
    kubernetes = replace(
        now,
        settings=settings,
        starts_on_cgroup_v1=now.starts_on_cgroup_v1 or v1,
        starts_with_swap=True if with_swap else now.starts_with_swap,
    )
    return replace(host, kubernetes=kubernetes)


def _is_off(known: KubeletTold, flag: str) -> bool:
    """The last one counts."""
    return any(one.value == "false" for one in known.flag(flag)[-1:])


def _embeds(host: HostFacts) -> bool:
    from gpunode.engines.registry import ENGINES

    distribution = ENGINES.get(host.kubernetes.distribution or "")
    return any(one.embedded_in for one in host.runtimes) or (distribution is not None and distribution.embedded)
