"""Which engines may run the kubelet's pods."""

from __future__ import annotations

from gpunode.engines.kubernetes.for_pods import may_run_pods
from gpunode.model.facts import HostFacts, RuntimeFacts


def pod_engines(host: HostFacts) -> tuple[RuntimeFacts, ...]:
    """Of those that run; a containerd without CRI serves docker, and no kubelet by itself."""
    from gpunode.engines.docker import dockershim
    from gpunode.engines.docker.engine import Docker

    running = tuple(one for one in host.runtimes if one.active and not one.user)
    docker = tuple(one for one in running if one.name == Docker.name)
    if dockershim.runs_pods(host):
        return docker
    return tuple(one for one in running if may_run_pods(one) and (one.cri_error is None or not docker))
