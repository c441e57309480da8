"""Who says which cgroup driver the kubelet uses: its own configuration, or containerd."""

from __future__ import annotations

from gpunode.catalog.versions import first_with
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.versions import at_least


def kubelet_asks_containerd(host: HostFacts, engine: RuntimeFacts) -> bool | None:
    """The kubelet takes the driver from CRI's RuntimeConfig, whatever its own file and flags say; None: not known.

    containerd answers with the SystemdCgroup of its default runtime (containerd/containerd#8722). The kubelet's version
    is that of its package: a kubelet that was copied onto the host has none here.
    """
    if engine.version is None:
        return None
    if not at_least(engine.version, first_with("containerd", "cri-runtime-config")):
        return False
    package = host.packages.installed.get("kubelet")
    if package is None or not package.configured:
        return None
    return at_least(package.version, first_with("kubelet", "cgroup-driver-from-cri"))
