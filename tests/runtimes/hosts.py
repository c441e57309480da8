"""Hosts with one engine and one config file, for the tests of this room."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from gpunode.model.facts import FileFacts, HostFacts, KernelFacts, KubernetesFacts, OsFacts, RuntimeFacts

PATHS = {"docker": "/etc/docker/daemon.json", "containerd": "/etc/containerd/config.toml"}
SOCKETS = {"docker": "/run/docker.sock", "containerd": "/run/containerd/containerd.sock"}


def engine_facts(name: str, version: str | None, **observed: object) -> RuntimeFacts:
    """A running engine with runc as its default, where `observed` says nothing else."""
    seen: dict[str, object] = {"active": True, "effective_default": "runc", "handlers": ("runc",), **observed}
    return RuntimeFacts(name, version, PATHS[name], f"{name}.service", SOCKETS[name], **seen)  # type: ignore[arg-type]


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
