"""Whether the kubelet starts its pods with docker itself, without CRI."""

from __future__ import annotations

from gpunode.catalog.versions import first_with
from gpunode.model.facts import HostFacts
from gpunode.model.versions import at_least


def runs_pods(host: HostFacts) -> bool:
    """Releases before 1.24 do unless they are told otherwise: --container-runtime=remote, as kubeadm writes for CRI."""
    package = host.packages.installed.get("kubelet")
    version = host.kubernetes.version or (package.version if package else None)
    settings = host.kubernetes.settings
    if settings is None or version is None or host.runtime("docker") is None:
        return False
    return settings.container_runtime in (None, "docker") and not at_least(version, first_with("kubelet", "no-docker"))
