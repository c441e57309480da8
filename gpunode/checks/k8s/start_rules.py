"""What a kubelet of some release starts with: for the checks of today's, and for what an upgrade changes."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing, named
from gpunode.catalog.versions import first_with
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import Told
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction, setup

NO_SWAP = "swapoff -a, and take swap out of /etc/fstab; or set failSwapOn: false for the kubelet"
UNIFIED = "systemd.unified_cgroup_hierarchy=1 on the kernel's command line"


def starts_on_its_cgroups(host: HostFacts, version: str | None = None) -> bool:
    """Whether a kubelet of this release starts on the host's cgroup hierarchy, which is known; None: any release."""
    if host.cgroup == "v2" or host.kubernetes.starts_on_cgroup_v1:
        return True
    return version is not None and not at_least(version, first_with("kubelet", "fails-on-cgroup-v1"))


def taken_out(names: str, places: Sequence[Told], where: str) -> Remedy:
    """By setup where it edits all of these places, and else by hand, in `where`. A package's file is not edited."""
    if places and all(one.path and not one.packaged for one in places):
        files = listing(dict.fromkeys(named(one.path) for one in places))
        return Remedy(RepairAction.CONFIGURE, setup("--only", "kubernetes"), f" takes {names} out of {files}")
    return Remedy(RepairAction.CONFIGURE, f"take {names} out of {where}, and restart it")
