"""InfiniBand and RoCE ports: are those that were up still up, and alike?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import duration
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.system import RdmaPort
from gpunode.remedy import Remedy, RepairAction

SYSFS = "/sys/class/infiniband"
RDMA = (needs.gpu, needs.system)
CABLE = Remedy(
    RepairAction.REPLACE, "reseat or replace cable and transceiver, look at the switch's port; ibstat shows the state"
)
MANAGER = Remedy(
    RepairAction.RESTART_SERVICE,
    "systemctl start opensm where the fabric's subnet manager is, or start that of the switch; ibstat shows the state",
)
NO_PORT = "no RDMA device"
ALIKE = 4  # ports of one board and speed from which on a single one that differs is the odd one
DAY_S = 86400


def rdma_ports(host: HostFacts) -> tuple[RdmaPort, ...]:
    """Without devices that are software (rxe, siw), and without NVLink 5 switches, which look like InfiniBand."""
    known, switches = host.system.rdma if host.system else (), host.driver.switch_management
    return tuple(port for port in known if port.board is not None and port.address not in switches)


def infiniband(host: HostFacts) -> bool:
    """An InfiniBand port is in use."""
    return any(port.layer == "InfiniBand" and port.state == "ACTIVE" for port in rdma_ports(host))


@check(
    "net.rdma-devices",
    Severity.ERROR,
    title="RDMA ports that were up are up, with all their lanes",
    reads=f"{SYSFS}/*/ports/*/state, phys_state, rate and counters/link_downed",
    remedy=CABLE,
    needs=RDMA,
)
def rdma_devices(host: HostFacts, context: Context) -> CheckOutcome:
    """An RDMA port has gone down, waits for a subnet manager, or runs on one lane. A port that never was up has no
    cable, which is no fault."""
    known = [port for port in rdma_ports(host) if port.state is not None]
    if not known:
        return NotApplicable(NO_PORT)
    waiting = [port for port in known if port.state == "INIT"]
    gone = [port for port in known if port.state == "DOWN" and port.physical != "Disabled" and port.downed]
    thin = [port for port in known if port.state == "ACTIVE" and "(1X" in (port.rate or "")]
    if gone:
        return _ports(f"{listing(p.name for p in gone)} has gone down", gone[0], CABLE)
    if waiting:
        return _ports(f"{listing(p.name for p in waiting)} waits for a subnet manager", waiting[0], MANAGER)
    if thin and any("(4X" in (port.rate or "") for port in known):
        return _ports(f"{listing(p.name for p in thin)} runs on one lane", thin[0], CABLE)
    return None


def _ports(summary: str, first: RdmaPort, remedy: Remedy) -> Finding:
    path = f"{SYSFS}/{first.device}/ports/{first.port}"
    says = f"state {first.state}, phys_state {first.physical}, rate {first.rate}, link_downed {first.downed}"
    return Finding(summary, evidence=f"{path}: {says}", remedy=remedy)


@check(
    "net.ib-errors",
    Severity.WARNING,
    title="links of RDMA ports are stable",
    reads=f"{SYSFS}/*/ports/*/counters/link_downed; /proc/uptime",
    remedy=CABLE,
    needs=RDMA,
)
def ib_errors(host: HostFacts, context: Context) -> CheckOutcome:
    """The link of an RDMA port goes down again and again: jobs hang or die in the middle of a collective."""
    from gpunode.catalog.system_limits import limit

    known = [(port, port.downed) for port in rdma_ports(host) if port.downed is not None]
    up_s = host.system.uptime_s if host.system else None
    if not known:
        return NotApplicable("no RDMA device counts how often its link went down")
    if up_s is None:
        return NotApplicable("/proc/uptime was not read")
    # The counter begins when the driver loads, at boot at the latest; a day of it is the least that is looked at.
    days = max(1.0, up_s / DAY_S)
    worst, times = max(known, key=lambda pair: pair[1])
    if times <= limit("link-downs-a-day") * days:
        return None
    return Finding(
        f"the link of {worst.name} went down {times} times",
        evidence=f"{SYSFS}/{worst.device}/ports/{worst.port}/counters/link_downed is {times}, {duration(up_s)} after "
        "the boot",
        remedy=CABLE,
    )


@check(
    "net.rdma-uniform",
    Severity.WARNING,
    title="RDMA ports of one kind have one rate and one MTU",
    reads=f"{SYSFS}/*/board_id, ports/*/rate; /sys/class/net/*/mtu",
    remedy=Remedy(RepairAction.CONFIGURE, "give the port the MTU of the others; for its rate check cable and switch"),
    needs=RDMA,
)
def rdma_uniform(host: HostFacts, context: Context) -> CheckOutcome:
    """One RDMA port of many alike is slower, or has another MTU: collectives go at its pace, or hang."""
    active = [port for port in rdma_ports(host) if port.state == "ACTIVE"]
    kinds = [[port for port in active if port.board == board] for board in sorted({p.board or "" for p in active})]
    many = [kind for kind in kinds if len(kind) >= ALIKE]
    if not many:
        return NotApplicable(f"fewer than {ALIKE} RDMA ports of one kind are active")
    for kind in many:
        for what, of in (("rate", _rate), ("MTU", _mtu)):
            odd = _odd(kind, of)
            if odd is not None:
                port, usual = odd
                return _differs(port, what, of(port), usual)
    return None


def _rate(port: RdmaPort) -> str | None:
    return port.rate


def _mtu(port: RdmaPort) -> str | None:
    return None if port.mtu is None else str(port.mtu)


def _odd(kind: list[RdmaPort], of: Callable[[RdmaPort], str | None]) -> tuple[RdmaPort, str] | None:
    """The single port that differs where all others agree; two networks on one node differ in more than one."""
    counts = Counter(value for port in kind if (value := of(port)) is not None)
    if len(counts) != 2 or counts.total() < ALIKE or min(counts.values()) != 1:
        return None
    usual, single = (value for value, _ in counts.most_common())
    return next(port for port in kind if of(port) == single), usual


def _differs(port: RdmaPort, what: str, value: str | None, usual: str) -> Finding:
    return Finding(
        f"the {what} of {port.name} is {value}, that of the others {usual}",
        evidence=f"{SYSFS}/{port.device}/ports/{port.port}: board {port.board}, {what} {value}",
        remedy=Remedy(
            RepairAction.CONFIGURE, "give the port the MTU of the others; for its rate check cable and switch"
        ),
    )
