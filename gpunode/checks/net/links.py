"""The RDMA stack in the kernel, and what its log says of links."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.net.rdma import CABLE, DAY_S, NO_PORT, RDMA, rdma_ports
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.model.system import RdmaModule
from gpunode.remedy import Remedy, RepairAction

CORES = ("mlx5_core", "ib_core")
WHOLE = Remedy(
    RepairAction.UPGRADE,
    "install DOCA-Host (or MLNX_OFED) again for this kernel, or remove it, so that all of the stack is of one source; "
    "then reboot",
)


@check(
    "net.ofed-version",
    Severity.WARNING,
    title="mlx5_core and the RDMA core come from one stack",
    reads="/sys/module/mlx5_core, mlx5_ib, ib_core and ib_uverbs: version, srcversion, taint",
    remedy=WHOLE,
    needs=(needs.gpu, needs.machine, needs.system),
)
def ofed_version(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """The driver of the ConnectX adapters comes from OFED or DOCA and the RDMA core from the kernel, or the other way
    round: modules do not load, or fail in what the other half does not have."""
    modules = host.system.rdma_modules if host.system else None
    if modules is None:
        return NotApplicable("this recording does not have the RDMA modules")
    names = {module.name for module in modules}
    if lacking := [name for name in CORES if name not in names]:
        return NotApplicable(f"{listing(lacking)} is not loaded as a module")
    seen = f"/sys/module: {listing(map(_described, modules))}"
    if len({module.foreign for module in modules}) == 1:
        return Passed(seen)
    return Finding(
        "the RDMA modules are of different stacks",
        evidence=seen,
        remedy=WHOLE,
    )


def _described(module: RdmaModule) -> str:
    version = module.version or f"srcversion {module.srcversion}" if module.srcversion else "without a version"
    return f"{module.name} {version} " + (f"from outside (taint {module.taint})" if module.foreign else "of the kernel")


@check(
    "net.ib-flap",
    Severity.ERROR,
    title="no RDMA port loses its link again and again",
    reads="the kernel log: Link down, Cable unplugged; /proc/uptime",
    remedy=CABLE,
    needs=(*RDMA, needs.machine, needs.kernel_log),
)
def ib_flap(host: HostFacts, context: Context) -> CheckOutcome:
    """An RDMA port lost its link again and again in the last day: jobs hang, or die in the middle of a collective."""
    from gpunode.catalog.system_limits import limit

    ports = rdma_ports(host)
    if not ports:
        return NotApplicable(NO_PORT)
    up_s = host.system.uptime_s if host.system else None
    slots = {slot(port.address): port.name for port in ports if port.address}
    lost = [one for one in host.log.links_lost if slot(one.address) in slots]
    if not lost:
        return None if any(port.layer == "Ethernet" for port in ports) else NotApplicable(UNLOGGED)
    most = limit("link-downs-a-day")
    if up_s is None:
        return NotApplicable("/proc/uptime was not read")
    recent = {one.address: sum(s is not None and up_s - s <= DAY_S for s in one.at_s) for one in lost}
    worst = max(recent, key=lambda address: recent[address])
    if recent[worst] > most:
        return Finding(
            f"{slots[slot(worst)]} lost its link {recent[worst]} times in a day",
            evidence=f"kernel log: {worst} lost its link {recent[worst]} times in the last 24 h, more than {most}",
            remedy=CABLE,
            entities=pci(worst),
        )
    undated = any(one.at_s.count(None) > most for one in lost)
    return NotApplicable("the kernel's log has lost links and no times") if undated else None


UNLOGGED = "the kernel logs no lost link of an InfiniBand port (net.ib-errors counts them)"


def slot(address: str | None) -> str:
    """The card of a function; the ports of one card share their name in bonds."""
    return (address or "").rpartition(".")[0]
