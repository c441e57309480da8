"""What a kubelet of some release starts with: for the checks of today's, and for what an upgrade changes."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.catalog.versions import first_with
from gpunode.model.facts import HostFacts
from gpunode.model.versions import at_least

# What a kubelet may set on its own node below kubernetes.io and k8s.io (KEP-279, ValidateKubeletFlags).
OWN_LABELS = (
    "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/instance-type",
    "beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "failure-domain.kubernetes.io/zone", "failure-domain.kubernetes.io/region",
)  # fmt: skip
OWN_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
NO_SWAP = "swapoff -a, and take swap out of /etc/fstab; or set failSwapOn: false for the kubelet"
UNIFIED = "systemd.unified_cgroup_hierarchy=1 on the kernel's command line"


def starts_on_its_cgroups(host: HostFacts, version: str | None = None) -> bool:
    """Whether a kubelet of this release starts on the host's cgroup hierarchy, which is known; None: any release."""
    if host.cgroup == "v2" or host.kubernetes.starts_on_cgroup_v1:
        return True
    return version is not None and not at_least(version, first_with("kubelet", "fails-on-cgroup-v1"))


def refused_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Those with which a kubelet since 1.16 does not start (versions.yaml, refuses-node-labels)."""
    return tuple(label for label in labels if _refused(label))


def _refused(label: str) -> bool:
    namespace = label.partition("/")[0] if "/" in label else ""
    reserved = namespace.endswith(("kubernetes.io", "k8s.io")) and (
        namespace in ("kubernetes.io", "k8s.io") or namespace.endswith((".kubernetes.io", ".k8s.io"))
    )
    own = label in OWN_LABELS or any(namespace == n or namespace.endswith(f".{n}") for n in OWN_NAMESPACES)
    return reserved and not own
