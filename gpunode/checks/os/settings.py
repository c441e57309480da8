"""Settings of the system that GPU work and the kubelet depend on: swap, locked memory, the clock, the kernel's log."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.net.rdma import infiniband
from gpunode.checks.registry import Context, check
from gpunode.checks.words import CHRONY, bytes_of, chrony
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.remedy import Remedy, RepairAction

TIMESYNCD = "systemd-timesyncd.service"
CLOCKS = (TIMESYNCD, "chrony.service", "chronyd.service", "ntp.service", "ntpd.service", "ntpsec.service",
          "openntpd.service", "phc2sys.service")  # fmt: skip
SETTLED_S = 900  # after that long a clock that is reachable has been set


@check(
    "os.swap",
    Severity.WARNING,
    title="which swap the host has",
    reads="/proc/swaps",
    remedy=Remedy(RepairAction.NONE, "nothing: k8s.swap says whether a kubelet minds it"),
    needs=(needs.gpu, needs.system),
)
def swap(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """Informative: where swap is on. GPU work does not mind it; whether a kubelet does is k8s.swap's."""
    used = host.system.swap if host.system else None
    if used is None:
        return NotApplicable("/proc/swaps was not read")
    return Passed(f"/proc/swaps: {listing(used)}") if used else None


@check(
    "os.memlock",
    Severity.WARNING,
    title="containers may lock the memory that RDMA registers",
    reads="/proc/PID/limits of the engines; /sys/class/infiniband",
    remedy=Remedy(RepairAction.CONFIGURE, "set LimitMEMLOCK=infinity in a drop-in of the engine's unit and restart it"),
    needs=(needs.gpu, needs.system),
)
def memlock(host: HostFacts, context: Context) -> CheckOutcome:
    """InfiniBand is in use, and containers may lock too little memory for it: registering buffers fails in them."""
    from gpunode.catalog.system_limits import limit

    if host.system is None or not infiniband(host):
        return NotApplicable("no InfiniBand port is active")
    if not host.system.memlock:
        return NotApplicable("no engine's limits were read")
    low = {name: most for name, most in host.system.memlock.items() if most < limit("memlock-bytes-low")}
    if not low:
        return None
    return Finding(
        f"containers of {listing(sorted(low))} may lock little memory, and InfiniBand is in use",
        evidence="Max locked memory: " + listing(f"{name} {bytes_of(most)}" for name, most in sorted(low.items())),
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "LimitMEMLOCK=infinity in a drop-in of the engine's unit, and a restart; or --ulimit memlock=-1 for each "
            "container",
        ),
    )


@check(
    "os.time-sync",
    Severity.WARNING,
    title="a daemon sets the clock",
    reads="the units of time daemons; /run/systemd/timesync/synchronized",
    remedy=Remedy(RepairAction.RESTART_SERVICE, CHRONY),
    needs=(needs.gpu, needs.machine),
)
def time_sync(host: HostFacts, context: Context) -> CheckOutcome:
    """Nothing sets the clock, or what should has not: certificates and tokens are refused once it is off."""
    asked = [name for name in CLOCKS if name in host.services]
    if not asked:
        return NotApplicable("the units of time daemons are not in this recording")
    active = [name for name in asked if host.services[name].active == "active"]
    if not active:
        return Finding(
            "nothing sets the clock",
            evidence=f"none of {listing(asked, 8)} is active",
            remedy=Remedy(RepairAction.RESTART_SERVICE, f"{chrony(host)}; or timedatectl set-ntp true"),
        )
    up_s = host.system.uptime_s if host.system else None
    if active != [TIMESYNCD] or up_s is None or host.system is None or host.system.clock_set is not False:
        return None
    if up_s < SETTLED_S:
        return NotApplicable("the host has just booted, and its clock is not set yet")
    return Finding(
        "systemd-timesyncd has not set the clock since the boot",
        evidence="/run/systemd/timesync/synchronized is absent",
        remedy=Remedy(
            RepairAction.CONFIGURE, "timedatectl timesync-status shows its server; UDP port 123 must be open"
        ),
    )


@check(
    "os.dmesg-access",
    Severity.WARNING,
    title="root can read the kernel's log",
    reads="journalctl -k, dmesg",
    remedy=Remedy(RepairAction.NONE, "journalctl -k -b and dmesg show why"),
    needs=(needs.gpu, needs.host_driver),
)
def dmesg_access(host: HostFacts, context: Context) -> CheckOutcome:
    """The kernel's log cannot be read, even as root: Xid errors and refused modules go unseen."""
    why = host.unread.get("kernel_log")
    if "kernel_log" in host.misread:
        return NotApplicable(f"{why} (os.answers-understood)")
    if why is None:
        return None if host.root else NotApplicable("not run as root")
    if not host.root:
        return NotApplicable(f"not run as root: {why}")
    return Finding(
        "the kernel's log cannot be read",
        evidence=f"journalctl -k, dmesg: {why}",
        remedy=Remedy(RepairAction.NONE, "journalctl -k -b and dmesg show why"),
    )
