"""GPUs as the kubelet counts them itself."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.catalog.versions import threshold
from gpunode.checks.upgrade.values import Effect, Upgrade
from gpunode.foreign import whole_number
from gpunode.remedy import Remedy, RepairAction, gpunode

ALPHA, GATE = "alpha.kubernetes.io/nvidia-gpu", "Accelerators"


def alpha_gpus(upgrade: Upgrade) -> Iterator[Effect]:
    """The node offers alpha.kubernetes.io/nvidia-gpu, which kubelets from 1.11 on do not have."""
    row, node = threshold("kubelet", "no-alpha-gpus"), upgrade.host.kubernetes.node
    if not upgrade.comes(row.release):
        return
    count = whole_number(node.capacity.get(ALPHA, "0")) if node else None
    gates = [one for one in upgrade.told.gates if one.name == GATE and one.on]
    if not count and not gates:
        return
    seen = f"the node's capacity has {ALPHA} {count}" if count else f"{gates[0].where} has {GATE}=true"
    yield Effect(
        "changes",
        "alpha-gpus",
        f"{upgrade.later} offers no {ALPHA} any more",
        f"{seen}; a pod that asks for it waits for ever",
        row.release,
        Remedy(
            RepairAction.CONFIGURE,
            "have pods ask for nvidia.com/gpu, which NVIDIA's device plugin offers: ",
            gpunode("k8s device-plugin", ssh=False),
            " prints it",
        ),
        row.source,
    )
