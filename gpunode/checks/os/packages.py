"""Who may change the driver's packages: automatic upgrades, pins, and whoever holds the package manager's lock."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import backend_of, duration
from gpunode.model.facts import HostFacts
from gpunode.model.installed import driver_set
from gpunode.model.plan import HOLD_STEP, UNHOLD_STEP
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.signed_modules import SIGNED_MODULES, pins_against_modules, signed_kind
from gpunode.remedy import Remedy, RepairAction, setup

PACKAGED = (needs.gpu, needs.own_driver, needs.packages)
UNOWNED = "no package manager owns the driver"
PIN = Remedy(RepairAction.CONFIGURE, setup("--only", "driver"), " pins the driver's packages")


@check(
    "os.unattended-upgrades",
    Severity.WARNING,
    title="automatic upgrades leave the driver alone",
    reads="the settings and timers of automatic upgrades; the package manager's pins",
    remedy=PIN,
    needs=PACKAGED,
)
def unattended_upgrades(host: HostFacts, context: Context) -> CheckOutcome:
    """An automatic upgrade may replace the driver's libraries while its module is loaded: CUDA fails until a reboot."""
    if host.packages.auto_upgrade is None:
        return NotApplicable("whether upgrades are automatic is not known")
    if not host.packages.auto_upgrade:
        return None
    names = driver_set(host)
    if not names:
        return NotApplicable(UNOWNED)
    if kind := signed_kind(host):
        return NotApplicable(
            f"its modules ({SIGNED_MODULES}{kind}-*) come with each kernel, for the driver's newest version: with the "
            "driver pinned, the next kernel would have none"
        )
    loose = sorted(names - _pinned(host, names))
    if not loose:
        return None
    return Finding(
        "automatic upgrades are on, and the driver is not pinned",
        evidence=f"upgrades are installed automatically; not pinned: {listing(loose)}",
        remedy=PIN,
        steps=(HOLD_STEP,),
        otherwise=Remedy(
            RepairAction.CONFIGURE, "pin the driver's packages, or exclude them from the automatic upgrades"
        ),
    )


def _pinned(host: HostFacts, names: frozenset[str]) -> frozenset[str]:
    """A pin may be a pattern."""
    return frozenset(name for name in names if any(fnmatchcase(name, pin) for pin in host.packages.held))


@check(
    "os.held-packages",
    Severity.WARNING,
    title="all or none of the driver's packages are pinned",
    reads="the package manager's pins",
    remedy=PIN,
    needs=PACKAGED,
)
def held_packages(host: HostFacts, context: Context) -> CheckOutcome:
    """Only some of the driver's packages are pinned: the next upgrade stops at them, or leaves two versions. Where its
    modules are Ubuntu's own, any pin keeps them from the next kernel."""
    names = driver_set(host)
    if not names:
        return NotApplicable(UNOWNED)
    if kind := signed_kind(host):
        return _keeps_modules_away(host, kind)
    pinned = _pinned(host, names)
    held, loose = sorted(pinned), sorted(names - pinned)
    if not held or not loose:
        return None
    return Finding(
        f"{len(held)} of {len(names)} packages of the driver are pinned",
        evidence=f"pinned: {listing(held)}; not pinned: {listing(loose)}",
        remedy=PIN,
        steps=(HOLD_STEP,),
        otherwise=Remedy(RepairAction.CONFIGURE, "pin all packages of the driver, or none"),
    )


def _keeps_modules_away(host: HostFacts, kind: str) -> CheckOutcome:
    """Those that gpunode pinned once, its setup releases; with one of somebody else's all are named."""
    from gpunode.packages.pins import pinned_by_others, unpinning

    pins, backend = pins_against_modules(host), backend_of(host)
    if not pins or backend is None:
        return None
    by_hand = Remedy(RepairAction.CONFIGURE, unpinning(backend, pins))
    ours = Remedy(RepairAction.CONFIGURE, setup("--only", "driver"), " removes gpunode's pins")
    return Finding(
        f"the next kernel comes without a module: {listing(pins)} {'is' if len(pins) == 1 else 'are'} pinned",
        evidence=f"{SIGNED_MODULES}{kind}-* of a kernel want the version of the driver that they were built with",
        remedy=by_hand if pinned_by_others(host, pins) else ours,
        steps=(UNHOLD_STEP,),
        otherwise=by_hand,
    )


@check(
    "os.pkg-lock",
    Severity.WARNING,
    title="no process sits on the package manager's lock",
    reads="/proc/locks; the start of the process that holds the lock",
    remedy=Remedy(RepairAction.WAIT, "look at what the process waits for; never delete the lock"),
    needs=(needs.gpu, needs.packages),
)
def pkg_lock(host: HostFacts, context: Context) -> CheckOutcome:
    """A process has held the package manager's lock for longer than an installation takes: none can begin."""
    from gpunode.catalog.system_limits import limit

    holder = host.packages.lock_holder
    if holder is None:
        return None
    held_s = host.system.lock_held_s if host.system else None
    if held_s is None:
        return NotApplicable(f"{holder} holds the lock; for how long is not known")
    if held_s <= limit("lock-seconds-long"):
        return NotApplicable(f"{holder} is at work: it has held the lock for {duration(held_s)}")
    pid = named(holder.partition(" ")[0])
    return Finding(
        f"{holder} holds the package manager's lock",
        evidence=f"/proc/{pid}/stat: it has run for {duration(held_s)}",
        remedy=Remedy(
            RepairAction.WAIT,
            f"ps -o pid,etime,stat,wchan,args -p {pid} shows what it waits for; never delete the lock",
        ),
    )
