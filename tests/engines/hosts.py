"""Hosts with one engine and one config file, for the tests of this room."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from gpunode.model.facts import (
    HostFacts,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    RuntimeFacts,
)
from gpunode.model.files import FileFacts

PATHS = {
    "docker": "/etc/docker/daemon.json",
    "containerd": "/etc/containerd/config.toml",
    "crio": "/etc/crio/crio.conf",
    "k3s": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "rke2": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "k0s": "/etc/k0s/containerd.toml",
    "microk8s": "/var/snap/microk8s/7964/args/containerd.toml",
    "podman": "/etc/containers/containers.conf",
}
SOCKETS = {
    "docker": "/run/docker.sock",
    "containerd": "/run/containerd/containerd.sock",
    "crio": "/var/run/crio/crio.sock",
    "k3s": "/run/k3s/containerd/containerd.sock",
    "rke2": "/run/k3s/containerd/containerd.sock",
    "k0s": "/run/k0s/containerd.sock",
    "microk8s": "/var/snap/microk8s/common/run/containerd.sock",
    "podman": "",
}
UNITS = {
    "rke2": "rke2-server.service",
    "k0s": "k0sworker.service",
    "microk8s": "snap.microk8s.daemon-containerd.service",
    "podman": "",
}


def engine_facts(name: str, version: str | None, **observed: object) -> RuntimeFacts:
    """A running engine with runc as its default, where `observed` says nothing else."""
    seen: dict[str, object] = {"active": True, "effective_default": "runc", "handlers": ("runc",), **observed}
    unit = UNITS.get(name, f"{name}.service")
    return RuntimeFacts(name, version, PATHS[name], unit, SOCKETS[name], **seen)  # type: ignore[arg-type]


def host_with(
    *engines: RuntimeFacts, files: Mapping[str, str | None], kubelet: str | None = None, init: str = "systemd"
) -> HostFacts:
    """`kubelet`: its cgroup driver; None: there is no kubelet."""
    return HostFacts(
        target="node7",
        hostname="node7",
        os=OsFacts("debian", "12"),
        kernel=KernelFacts("6.1.0"),
        root=True,
        init=init,
        runtimes=engines,
        kubernetes=KubernetesFacts(kubelet is not None, kubelet),
        files={path: file_facts(path, text) for path, text in files.items()},
    )


def file_facts(path: str, text: str | None) -> FileFacts:
    if text is None:
        return FileFacts(path)
    return FileFacts(path, text, hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest(), 0o644)
