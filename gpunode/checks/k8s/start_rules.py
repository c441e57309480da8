"""What a kubelet of some release starts with: for the checks of today's, and for what an upgrade changes."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing, named
from gpunode.catalog.versions import first_with
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import Told
from gpunode.model.versions import at_least, release
from gpunode.remedy import Remedy, RepairAction, setup

NO_SWAP = "swapoff -a, and take swap out of /etc/fstab; or set failSwapOn: false for the kubelet"
UNIFIED = "systemd.unified_cgroup_hierarchy=1 on the kernel's command line, and a reboot"
V2_KERNEL = (4, 15)  # runc, docs/cgroup-v2.md: no older one can be used


def starts_on_its_cgroups(host: HostFacts, version: str | None = None) -> bool:
    """Whether a kubelet of this release starts on the host's cgroup hierarchy, which is known; None: any release."""
    if host.cgroup == "v2" or host.kubernetes.starts_on_cgroup_v1:
        return True
    return version is not None and not at_least(version, first_with("kubelet", "fails-on-cgroup-v1"))


def to_v2(host: HostFacts) -> str:
    """How this host gets to cgroup v2."""
    kernel = release(host.kernel.release)
    if kernel and kernel < V2_KERNEL:
        return "a newer release of the distribution, as Linux before 4.15 has no cgroup v2 that can be used"
    return UNIFIED


def taken_out(names: str, places: Sequence[Told], where: str) -> Remedy:
    """By setup where it edits all of these places, and else by hand, in `where`. A package's file is not edited."""
    if places and all(one.path and not one.packaged for one in places):
        files = listing(dict.fromkeys(named(one.path) for one in places))
        return Remedy(RepairAction.CONFIGURE, setup("--only", "kubernetes"), f" takes {names} out of {files}")
    return Remedy(RepairAction.CONFIGURE, f"take {names} out of {where}, and restart it")
