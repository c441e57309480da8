"""The host under the kubelet: cgroup hierarchy and swap."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing
from gpunode.catalog.versions import threshold
from gpunode.checks.k8s.start_rules import NO_SWAP, starts_on_its_cgroups, to_v2
from gpunode.checks.upgrade.values import Effect, Upgrade
from gpunode.model.versions import written
from gpunode.remedy import Remedy, RepairAction


def cgroup_v1(upgrade: Upgrade) -> Iterator[Effect]:
    """A kubelet from 1.35 on does not start on cgroup v1 unless it is told to, and a later one will not at all."""
    host, row = upgrade.host, threshold("kubelet", "fails-on-cgroup-v1")
    since = row.release
    if not upgrade.has(since) or host.cgroup == "v2":
        return
    if host.cgroup is None:
        yield Effect(
            "unknown",
            "cgroup-v1",
            f"whether {upgrade.later} starts on this host's cgroups",
            f"the cgroup hierarchy is not known; on cgroup v1 it does not start from {written(since)} on",
            since,
            source=row.source,
        )
        return
    seen = f"/proc/mounts: /sys/fs/cgroup is {host.cgroup}"
    if not starts_on_its_cgroups(host, written(upgrade.to)):
        known = upgrade.told.settings_known
        yield Effect(
            "stops" if known else "unknown",
            "cgroup-v1",
            f"{upgrade.later} does not start on cgroup v1" if known else f"whether {upgrade.later} starts on cgroup v1",
            f"{seen}; failCgroupV1 is not false{upgrade.already(since)}"
            if known
            else f"{seen}; it starts with failCgroupV1: false alone, and its configuration was not read",
            since,
            Remedy(
                RepairAction.CONFIGURE,
                f"move to cgroup v2 ({to_v2(host)}), or set failCgroupV1: false in the kubelet's "
                f"configuration{_kubeadm(upgrade)}",
            ),
            row.source,
        )
    elif upgrade.comes(later := threshold("kubelet", "cgroup-v1-deprecated").release):
        yield Effect(
            "changes",
            "cgroup-v1",
            f"{upgrade.later} starts on cgroup v1 because it is told to: a later release will not",
            f"{seen}; failCgroupV1 is false",
            later,
            Remedy(RepairAction.CONFIGURE, f"move to cgroup v2: {to_v2(host)}"),
            threshold("kubelet", "cgroup-v1-deprecated").source,
        )


def _kubeadm(upgrade: Upgrade) -> str:
    """Its own check of the system refuses cgroup v1 as well."""
    by_kubeadm = upgrade.host.kubernetes.distribution == "kubeadm"
    return " and have kubeadm ignore its check SystemVerification" if by_kubeadm else ""


def swap(upgrade: Upgrade) -> Iterator[Effect]:
    """Swap is on, and a kubelet does not start with it; one that runs was started before it was switched on."""
    host, row = upgrade.host, threshold("kubelet", "fails-on-swap")
    since = row.release
    if upgrade.embedded or not upgrade.has(since):
        return
    used = host.system.swap if host.system else None
    if used == () or host.kubernetes.starts_with_swap:
        return
    what = f"/proc/swaps: {listing(used)}" if used else "/proc/swaps was not read"
    if used is None or host.kubernetes.starts_with_swap is None or not upgrade.told.settings_known:
        yield Effect(
            "unknown",
            "swap",
            f"whether swap keeps {upgrade.later} from starting",
            f"{what}; failSwapOn of the kubelet is {_fail_swap_on(upgrade)}",
            since,
            source=row.source,
        )
        return
    yield Effect(
        "stops",
        "swap",
        f"{upgrade.later} does not start with swap",
        f"{what}; failSwapOn is not false{upgrade.already(since)}",
        since,
        Remedy(RepairAction.CONFIGURE, NO_SWAP),
        row.source,
    )


def _fail_swap_on(upgrade: Upgrade) -> str:
    known = upgrade.host.kubernetes.starts_with_swap is not None and upgrade.told.settings_known
    return "not false" if known else "not known: its configuration was not read"
