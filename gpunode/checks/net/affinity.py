"""RDMA devices and GPUs: does each GPU have one as near as the others have?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.net.rdma import ALIKE, NO_PORT, RDMA, SYSFS, rdma_ports
from gpunode.checks.pci_tree import common, lacks_places
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.model.system import RdmaPort
from gpunode.model.topology import Place, Topology
from gpunode.remedy import Remedy, RepairAction

SLOT = Remedy(
    RepairAction.REPLACE,
    "reseat the RDMA device that belongs to it, or bring it up (net.rdma-devices, nvidia-smi topo -m show which)",
)


class Near(IntEnum):
    """How near two functions are."""

    FAR = 0
    NODE = 1
    SWITCH = 2

    @property
    def words(self) -> str:
        return ("at another NUMA node", "at its NUMA node", "below its PCIe switch or root port")[self]


class Pair(NamedTuple):
    gpu: str  # PCI address
    nic: RdmaPort  # the nearest one
    near: Near

    def __str__(self) -> str:
        return f"the nearest of {self.gpu} is {self.nic.device}, {self.near.words}"


@check(
    "net.nic-gpu-affinity",
    Severity.WARNING,
    title="every GPU has an RDMA device as near as the others have",
    reads=f"{SYSFS}/*/device and GPUs in the tree below /sys/devices; their numa_node",
    remedy=SLOT,
    needs=(*RDMA, needs.machine, needs.host_driver, needs.topology),
)
def nic_gpu_affinity(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """A GPU of several has no RDMA device with a link near it, and most of the others have: its collectives go over the
    CPUs' interconnect and share another GPU's device."""
    nics = [port for port in rdma_ports(host) if port.state == "ACTIVE" and port.address]
    if not nics:
        return NotApplicable("no RDMA port is active" if rdma_ports(host) else NO_PORT)
    if host.virtualization is not None:
        return NotApplicable("a virtual machine: its PCI tree is not the machine's")
    if len(host.gpus) < ALIKE:
        return NotApplicable(f"fewer than {ALIKE} GPUs: their places say nothing")
    places = (host.topology or Topology()).places
    known = [(nic, place) for nic in nics if (place := places.get(nic.address or ""))]
    if not known or lacks_places(host):
        return NotApplicable("where GPUs and RDMA devices are in the PCI tree was not read")
    return _compare([_nearest(gpu.address, places[gpu.address], known) for gpu in host.gpus])


def _nearest(gpu: str, place: Place, nics: Sequence[tuple[RdmaPort, Place]]) -> Pair:
    nic, there = max(nics, key=lambda nic: _near(place, nic[1]))
    return Pair(gpu, nic, _near(place, there))


def _near(one: Place, other: Place) -> Near:
    if common(one.bridges, other.bridges):
        return Near.SWITCH
    unknown = one.numa_node is None or other.numa_node is None
    return Near.NODE if unknown or one.numa_node == other.numa_node else Near.FAR


def _compare(pairs: Sequence[Pair]) -> Finding | Passed:
    """One device for all, or for one half of the GPUs, is how some nodes are built."""
    usual, count = Counter(pair.near for pair in pairs).most_common(1)[0]
    lacking = [pair for pair in pairs if pair.near < usual]
    served = {(pair.nic.address or "").rpartition(".")[0] for pair in pairs if pair.near is usual}
    if not lacking or count * 2 <= len(pairs) or len(served) < 2:
        return Passed(f"PCI tree: {listing(map(str, pairs), 8, between='; ')}")
    example = next(pair for pair in pairs if pair.near is usual)
    return Finding(
        f"{listing(pair.gpu for pair in lacking)} has no RDMA device as near as {count} other GPUs have",
        evidence=f"PCI tree: {lacking[0]}; {example}",
        remedy=SLOT,
        entities=pci(*(pair.gpu for pair in lacking)),
    )
