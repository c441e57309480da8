"""AWS's Elastic Fabric Adapter, which instances for training have beside their network."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

AMAZON, EFA = "1d0f", "efa"  # device ids efa0, efa1, efa2, ... by generation (pci.ids)


@check(
    "net.efa",
    Severity.WARNING,
    title="the efa driver has every Elastic Fabric Adapter",
    reads="/sys/bus/pci/devices/*/driver of 1d0f:efa*",
    remedy=Remedy(
        RepairAction.RELOAD_MODULE, "modprobe efa; AWS's EFA installer brings the module where it is missing"
    ),
    needs=(needs.gpu, needs.machine),
)
def efa(host: HostFacts, context: Context) -> CheckOutcome:
    """An Elastic Fabric Adapter has no driver: jobs of several nodes go over TCP, or do not start."""
    there = [d for d in host.pci if d.vendor == AMAZON and d.device.startswith(EFA)]
    if not there:
        return NotApplicable("no Elastic Fabric Adapter on the PCI bus")
    idle = [d.address for d in there if d.driver is None]
    if not idle:
        return None
    return Finding(
        f"{listing(idle)}, an Elastic Fabric Adapter, has no driver",
        evidence=f"/sys/bus/pci/devices/{idle[0]}/driver is absent",
        remedy=Remedy(
            RepairAction.RELOAD_MODULE,
            "modprobe efa; where the kernel has no such module, AWS's EFA installer brings it",
        ),
        entities=pci(*idle),
    )
