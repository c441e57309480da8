"""PCIe switches: do they forward what GPUs and RDMA devices below them send each other, or send it up to the CPU?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.net.rdma import rdma_ports
from gpunode.checks.pci import SYSFS
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.topology import Topology
from gpunode.remedy import Remedy, RepairAction

# Bits of the ACS control register (PCIe 5.0, 7.7.8.3), by lspci's names. Source validation alone leaves requests alone.
BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
REDIRECTS = 0b1100  # ReqRedir, CmpltRedir: requests and their answers go up to the root complex


@check(
    "pci.acs",
    Severity.WARNING,
    title="PCIe switches forward what GPUs send each other",
    reads=f"{SYSFS}/*/config of the ports of switches above GPUs and RDMA devices: the ACS control register",
    remedy=Remedy(
        RepairAction.CONFIGURE,
        "switch ACS off in the firmware's setup, or boot with pci=disable_acs_redir=ADDRESS;ADDRESS; not where GPUs "
        "are passed through to virtual machines, which ACS keeps apart",
    ),
    needs=(needs.gpu, needs.machine, needs.host_driver, needs.topology),
)
def acs(host: HostFacts, context: Context) -> CheckOutcome:
    """A PCIe switch sends what GPUs and RDMA devices below it send each other up to the CPU (ACS redirection), on bare
    metal: GPUDirect is slow, or hangs. A host that gives its GPUs to virtual machines needs that."""
    tree = host.topology or Topology()
    if reason := _need_not(host):
        return NotApplicable(reason)
    ports = sorted(set(_ports_between(host, tree)))
    if not ports:
        return NotApplicable("no two GPUs, and no GPU and RDMA device, are below one PCIe switch")
    on = [(port, control) for port in ports if (control := tree.acs.get(port)) is not None and control & REDIRECTS]
    if not on:
        unread = [port for port in ports if port not in tree.acs]
        why = "" if host.root else ": that needs root"
        return NotApplicable(f"the config space of {listing(unread)} was not read{why}") if unread else None
    port, control = on[0]
    below = [gpu.address for gpu in host.gpus if any(p in tree.places[gpu.address].bridges for p, _ in on)]
    return Finding(
        f"{len(on)} ports of PCIe switches send up to the CPU what GPUs and RDMA devices send each other",
        evidence=f"{SYSFS}/{port}/config: ACS control is 0x{control:04x} ({_words(control)})"
        + (f"; likewise {listing(other for other, _ in on[1:])}" if on[1:] else ""),
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f'switch ACS off in the firmware\'s setup, or add "pci=disable_acs_redir={";".join(p for p, _ in on)}" to '
            "the kernel command line and reboot; not where GPUs are passed through to virtual machines",
        ),
        entities=pci(*below),
    )


def _need_not(host: HostFacts) -> str | None:
    if host.virtualization is not None:
        return "a virtual machine: the switches are its host's"
    if len(host.own_gpus) < len(host.gpus) or "nvidia_vgpu_vfio" in host.kernel.modules:
        return "this host gives GPUs to virtual machines, which ACS keeps apart"
    if len(host.gpus) < 2:
        return "one GPU: there is no other to send to"
    return "where the GPUs are in the PCI tree was not read" if lacks_places(host) else None


def lacks_places(host: HostFacts) -> bool:
    """It is not known where all GPUs are."""
    tree = host.topology or Topology()
    return any(gpu.address not in tree.places for gpu in host.gpus)


def _ports_between(host: HostFacts, tree: Topology) -> Iterator[str]:
    """The ports at which the ways of a GPU and of another GPU or an RDMA device part, below a switch."""
    gpus = [gpu.address for gpu in host.gpus]
    nics = dict.fromkeys(port.address for port in rdma_ports(host) if port.address)
    pairs = (*combinations(gpus, 2), *((gpu, nic) for gpu in gpus for nic in nics if nic in tree.places))
    for one, other in pairs:
        ways = tree.places[one].bridges, tree.places[other].bridges
        shared = len(common(*ways))
        if shared >= 2 and shared % 2 == 0:  # the root port and a switch's upstream port, and so on down
            yield from (way[shared] for way in ways if len(way) > shared)


def common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The bridges that both are below."""
    parted = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[: min(len(one), len(other)) if parted is None else parted]


def _words(control: int) -> str:
    return " ".join(f"{name}+" for bit, name in enumerate(BITS) if control >> bit & 1)
