"""Who says which cgroup driver the kubelet uses: its own configuration, or its engine."""

from __future__ import annotations

from gpunode.catalog.feature_gates import known_from, locked_from
from gpunode.catalog.versions import first_with, threshold
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubelet_program import kubelet_version
from gpunode.model.versions import Release, at_least, release

GATE = "KubeletCgroupDriverFromCRI"


def kubelet_asks_containerd(host: HostFacts, engine: RuntimeFacts) -> bool | None:
    """The kubelet takes the driver from CRI's RuntimeConfig, whatever its own file and flags say; None: not known.

    containerd answers with the SystemdCgroup of its default runtime (containerd/containerd#8722). A gate of which
    nothing was read has its default.
    """
    if engine.version is None:
        return None
    if not at_least(engine.version, first_with("containerd", "cri-runtime-config")):
        return False
    kubelet, settings = release(kubelet_version(host)), host.kubernetes.settings
    gate = settings.gates.get(GATE) if settings else None
    return kubelet >= asks_from(gate.on if gate else None) if kubelet else None


def asks_from(gate: bool | None) -> Release:
    """The first release whose kubelet asks, with the gate on, off, or (None) not set. Off is refused once it is locked.

    Raises KeyError where a table has no row of it.
    """
    if gate is None:
        return threshold("kubelet", "cgroup-driver-from-cri").release
    found = known_from(GATE) if gate else locked_from(GATE)
    if found is None:
        raise KeyError(GATE)
    return found
