"""Constructed nodes before an upgrade, well but for one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubernetes import KubeletSettings, NodeFacts
from gpunode.model.packages import PackageFacts
from gpunode.model.system import SystemFacts
from tests.checks.hosts import READY
from tests.planner.engines.kubelets import CONFIG, HEAD, KUBEADM, PACKAGED, node

UNITS = {PACKAGED: KUBEADM, CONFIG: HEAD}
CONTAINERD = RuntimeFacts(
    "containerd", "2.1.9", "/etc/containerd/config.toml", "containerd.service", "/run/containerd/containerd.sock",
    active=True, effective_default="runc", systemd_cgroup={"runc": True, "nvidia": False},
)  # fmt: skip
assert READY.system is not None
NO_SWAP: SystemFacts = replace(READY.system, swap=())


def well(version: str | None = "1.34.2", files: Mapping[str, str] | None = None, **kubernetes: Any) -> HostFacts:
    """A node of kubeadm's on cgroup v2 without swap, with containerd 2.1; nothing stops its upgrade."""
    host = node(version or "", {**UNITS, **(files or {})}, runs=True)
    known = replace(host.kubernetes, **{"version": version, "starts_with_swap": False, **kubernetes})
    return replace(
        host, kubernetes=known, cgroup="v2", system=NO_SWAP, runtimes=(CONTAINERD,), packages=PackageFacts("apt")
    )


def on_containerd(version: str | None, host: HostFacts, **changes: Any) -> HostFacts:
    return replace(host, runtimes=(replace(CONTAINERD, version=version, **changes),))


def told_of_docker(version: str, runtime: str | None = None) -> HostFacts:
    """A node whose engines are docker and containerd; the kubelet has --container-runtime, or not."""
    docker = RuntimeFacts("docker", "20.10.24", "", "docker.service", "/run/docker.sock", active=True)
    host = well(version, settings=KubeletSettings(config=CONFIG, container_runtime=runtime))
    return replace(host, runtimes=(docker, CONTAINERD))


def offering(capacity: Mapping[str, str], host: HostFacts) -> HostFacts:
    return replace(host, kubernetes=replace(host.kubernetes, node=NodeFacts(capacity=capacity)))
