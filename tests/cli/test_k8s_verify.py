"""gpunode k8s verify: which engines may run the kubelet's pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.engines.kubernetes.pod_engines import pod_engines
from gpunode.model.facts import HostFacts, KubernetesFacts, RuntimeFacts
from gpunode.model.kubernetes import KubeletSettings
from tests.checks import hosts as h

DOCKER, CONTAINERD = (next(one for one in h.READY.runtimes if one.name == name) for name in ("docker", "containerd"))
NO_CRI = replace(CONTAINERD, cri_error="unknown service runtime.v1.RuntimeService")


def kubelet(version: str, runtime: str | None = None) -> HostFacts:
    settings = KubeletSettings(container_runtime=runtime)
    return replace(h.READY, kubernetes=KubernetesFacts(True, version=version, settings=settings))


@pytest.mark.parametrize(
    ("host", "runtimes", "names"),
    [
        (kubelet("1.34.2"), (DOCKER, CONTAINERD), ["containerd"]),
        (kubelet("1.23.9"), (DOCKER, CONTAINERD), ["docker"]),
        (kubelet("1.23.9", "remote"), (DOCKER, CONTAINERD), ["containerd"]),
        (kubelet("1.34.2"), (DOCKER, NO_CRI), []),
        (kubelet("1.34.2"), (NO_CRI,), ["containerd"]),
        (kubelet("1.34.2"), (replace(CONTAINERD, active=False),), []),
    ],
    ids=["containerd", "docker before 1.24", "remote before 1.24", "cri-dockerd", "CRI is off", "it does not run"],
)
def test_engines_of_the_pods(host: HostFacts, runtimes: tuple[RuntimeFacts, ...], names: list[str]) -> None:
    assert [one.name for one in pod_engines(replace(host, runtimes=runtimes))] == names
