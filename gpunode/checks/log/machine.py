"""The machine around the GPUs, as far as the kernel's log and its counters tell: switches, links, memory, crashes."""

from __future__ import annotations

from dataclasses import replace

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.log.lines import is_over
from gpunode.checks.log.seen import WEIGHT, is_old, own_kernel, remedy_for, when
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.kernel_log import AerCounters, LoggedSxid
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction

# Those of an older gpunode have no lines of machine checks and hung tasks either.
NO_COUNTERS = NotApplicable("the kernel's counters were not read (a recording of an older gpunode has none)")
RESEAT = "reseat the GPU, check riser, retimer and cables; then replace it"
MACHINE_CHECK, OOPS, SOFT_LOCKUP = 1 << 4, 1 << 7, 1 << 14  # admin-guide/tainted-kernels: M, D, L
# cper.c (of firmware), mce/core.c (a machine check that was raised, not polled), mce_amd.c and edac_mc.c of the kernel.
# No name of a process, which has 15 characters, is long enough to pass for one of these.
UNCORRECTED = regex(
    r"\[Hardware Error\]: (?:event severity: (?:recoverable|fatal)|CPU [0-9]{1,5}: Machine Check Exception|Uncorrected|"
    r"System Fatal error)|(?:^|\] |kernel: )EDAC MC[0-9]{1,3}: [0-9]{1,6} UE "
)


@check(
    "health.sxid",
    Severity.ERROR,
    title="no NVSwitch met an error",
    reads="the kernel log: SXid, which says itself whether it was fatal",
    remedy=Remedy(RepairAction.RESET_GPU, "nvidia-smi --gpu-reset without -i resets all GPUs and switches; or reboot"),
    needs=(needs.gpu, own_kernel, needs.kernel_log),
)
def sxid(host: HostFacts, context: Context) -> CheckOutcome:
    """An NVSwitch met an error: fatal ones stop GPUs that talk over it."""
    if not host.log.sxids:
        switches = any(d.vendor == "10de" and d.class_code == "0680" for d in host.pci)
        return None if switches else NotApplicable("no NVSwitch on the PCI bus")
    judged = sorted((one for x in host.log.sxids if (one := _judged(host, x))), key=lambda one: one[:2])
    if not judged:
        return None
    mild, _, first, meaning = judged[0]
    action = WEIGHT[judged[0][1]]
    reset = Remedy(
        RepairAction.RESET_GPU,
        "stop all GPU work, then nvidia-smi --gpu-reset without -i, which resets all GPUs and switches; or reboot",
    )
    return Finding(
        f"NVSwitch {first.address} met SXid {first.code}{'' if mild else ', fatal'}: {meaning}",
        evidence="kernel log: "
        + listing(
            (f"SXid {x.code} of {x.address} {when(x.count, x.last_s)}" for _, _, x, _ in judged),
            between="; ",
            what="others",
        ),
        remedy=reset if action is RepairAction.RESET_GPU else remedy_for(host, action, first.address),
        severity=Severity.WARNING if mild else None,
        entities=pci(*dict.fromkeys(x.address for _, _, x, _ in judged)),
    )


def _judged(host: HostFacts, one: LoggedSxid) -> tuple[bool, int, LoggedSxid, str] | None:
    """(it is only worth a look, weight of the action, itself, meaning); None for what asks for nothing."""
    from gpunode.catalog.xids import sxids

    row = sxids().get(one.code)
    fatal = one.fatal if one.fatal is not None else row is not None and row.severity == "error"
    if not fatal and row is not None and row.severity == "none":
        return None
    usual = RepairAction.RESET_GPU if fatal else RepairAction.SUPPORT
    action = row.action if row is not None and row.action is not RepairAction.NONE else usual
    link = "" if one.link is None else f", link {one.link}"
    meaning = row.meaning if row else "a number that NVIDIA's guide does not have"
    past = is_over(host, one.last_s) or is_old(host, one.last_s)
    return not fatal or past, WEIGHT.index(action), one, f"{meaning}{link}"


@check(
    "health.hang-detector",
    Severity.WARNING,
    title="no task hangs in the driver",
    reads="the kernel log: tasks blocked for minutes, with functions of the nvidia module on their stack",
    remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it: such a task cannot be killed"),
    needs=(needs.gpu, own_kernel, needs.kernel_log),
)
def hang_detector(host: HostFacts, context: Context) -> CheckOutcome:
    """A task waited for minutes inside the NVIDIA driver; where nvidia-smi does not answer either, the driver hangs."""
    hung = host.log.hung_in_driver
    silent = host.driver.smi is not None and host.driver.smi.code == 124
    if not hung:
        if silent:
            return NotApplicable("nvidia-smi does not answer (user.smi-works)")
        return NO_COUNTERS if host.kernel_state is None else None
    return Finding(
        f"{hung} task{'s' if hung > 1 else ''} waited for minutes inside the NVIDIA driver",
        evidence=f"kernel log: {hung} × blocked for more than, with [nvidia] on the stack"
        + ("; nvidia-smi did not answer within its limit" if silent else ""),
        remedy=Remedy(
            RepairAction.REBOOT,
            "journalctl -k -b | grep -e NVRM -e Xid shows what it waits for; drain the node and reboot it: "
            "such a task cannot be killed",
        ),
        severity=Severity.ERROR if silent else None,
    )


@check(
    "health.mce",
    Severity.ERROR,
    title="CPUs and memory of the host report no errors",
    reads="the kernel log: [Hardware Error]; /sys/devices/system/edac/mc/*/ue_count and ce_count; the kernel's taint",
    remedy=Remedy(RepairAction.REPLACE, "journalctl -k -b names CPU, bank or DIMM: have it replaced"),
    needs=(needs.gpu, needs.kernel_log),
)
def machine_checks(host: HostFacts, context: Context) -> CheckOutcome:
    """Memory of the host lost data, or, as a warning, its hardware reports errors."""
    from gpunode.catalog.xids import limits

    state = host.kernel_state
    if state is None and not host.log.machine_checks:
        return NO_COUNTERS
    lost = (state.memory_uncorrected if state else None) or 0
    corrected = state.memory_corrected if state else None
    tainted = bool(state and state.taint and state.taint & MACHINE_CHECK)
    grave = sum(bool(UNCORRECTED.search(line)) for line in host.driver.kernel_log)
    # Few and all corrected, by the kernel's own count: memory that is well has some.
    harmless = corrected is not None and 0 < corrected <= limits()["edac-corrected"] and not tainted and not grave
    many = corrected is not None and corrected > limits()["edac-corrected"]
    if not lost and not tainted and not many and (harmless or not host.log.machine_checks):
        return None
    told = (
        (lost, f"edac/mc/*/ue_count: {lost}"),
        (many, f"edac/mc/*/ce_count: {corrected}"),
        (tainted, "/proc/sys/kernel/tainted has M"),
        (
            host.log.machine_checks,
            f"kernel log: {host.log.machine_checks} lines of [Hardware Error]"
            + (f", {grave} of an error that was not corrected" if grave else ""),
        ),
    )
    return Finding(
        "memory of the host lost data" if lost else "the host's hardware reports errors",
        evidence="; ".join(words for there, words in told if there),
        remedy=Remedy(
            RepairAction.REPLACE,
            "journalctl -k -b | grep -e 'Hardware Error' -e EDAC names CPU, bank or DIMM: have it replaced",
        ),
        severity=None if lost else Severity.WARNING,
    )


@check(
    "pci.aer-errors",
    Severity.ERROR,
    title="PCIe reports no errors of GPUs",
    reads="/sys/bus/pci/devices/*/aer_dev_correctable, _nonfatal and _fatal; the kernel log: PCIe Bus Error",
    remedy=Remedy(RepairAction.REPLACE, RESEAT),
    needs=(needs.gpu, own_kernel, needs.kernel_log),
)
def aer_errors(host: HostFacts, context: Context) -> CheckOutcome:
    """PCIe reports errors of a GPU since boot: fatal ones cut it off, many corrected ones tell of a bad link."""
    from gpunode.catalog.xids import limits

    state = host.kernel_state
    counted = {a: c for a, c in state.aer.items() if c != AerCounters()} if state else {}
    for one in host.log.aer:
        # The counters may know less: they begin again where the device was taken off the bus and found again.
        seen, field = counted.get(one.address, AerCounters()), _FIELDS[one.how]
        counted[one.address] = replace(seen, **{field: max(getattr(seen, field) or 0, one.count)})
    if not counted:
        return NO_COUNTERS if state is None else NotApplicable("the kernel counts no PCIe errors of GPUs")
    most = limits()["aer-correctable"]
    bad = {a: c for a, c in counted.items() if c.fatal or c.nonfatal or (c.correctable or 0) > most}
    if not bad:
        return None
    worst = max(bad, key=lambda address: (bad[address].fatal or 0, bad[address].nonfatal or 0))
    return Finding(
        f"PCIe reports errors of {listing(bad)}",
        evidence=f"{worst} since boot: {_counts(bad[worst])}",
        remedy=Remedy(RepairAction.REPLACE, f"drain the node; {RESEAT}"),
        severity=None if bad[worst].fatal else Severity.WARNING,
        entities=pci(*bad),
    )


_FIELDS = {"corrected": "correctable", "nonfatal": "nonfatal", "fatal": "fatal"}


def _counts(one: AerCounters) -> str:
    known = (("fatal", one.fatal), ("not fatal", one.nonfatal), ("corrected", one.correctable))
    return ", ".join(f"{number} {word}" for word, number in known if number is not None)


@check(
    "boot.crash-evidence",
    Severity.WARNING,
    title="the kernel left no record of a crash",
    reads="/sys/fs/pstore/dmesg-*",
    remedy=Remedy(RepairAction.SUPPORT, "read the record, then remove it, so that the next one has room"),
    needs=(needs.gpu,),
)
def crash_evidence(host: HostFacts, context: Context) -> CheckOutcome:
    """A kernel crashed on this machine, and what it last said still lies in the firmware's memory."""
    if host.kernel_state is None:
        return NO_COUNTERS
    crashes = host.kernel_state.crashes
    if crashes is None:
        return NotApplicable("/sys/fs/pstore could not be read (root can, where it is mounted)")
    if not crashes:
        return None
    return Finding(
        "a kernel crashed on this machine",
        evidence=f"/sys/fs/pstore has {listing(crashes, 3)}",
        remedy=Remedy(
            RepairAction.SUPPORT,
            "read the files (NVRM or nvidia in them points to the driver), keep a copy, then remove them",
        ),
    )


@check(
    "drv.taint",
    Severity.WARNING,
    title="the kernel has not stumbled since boot",
    reads="/proc/sys/kernel/tainted: D (an oops), L (a soft lockup)",
    remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it"),
    needs=(needs.gpu, own_kernel),
)
def taint(host: HostFacts, context: Context) -> CheckOutcome:
    """The running kernel had an oops or a soft lockup: what it holds since may be broken. That it has modules of
    others, or without a signature, is how NVIDIA's driver is, and no fault.
    """
    if host.kernel_state is None or host.kernel_state.taint is None:
        return NO_COUNTERS
    bits = ((OOPS, "D: an oops"), (SOFT_LOCKUP, "L: a soft lockup"))
    found = [words for bit, words in bits if host.kernel_state.taint & bit]
    if not found:
        return None
    return Finding(
        f"the kernel had {' and '.join(words.partition(': ')[2] for words in found)} since boot",
        evidence=f"/proc/sys/kernel/tainted is {host.kernel_state.taint}: {', '.join(found)}",
        remedy=Remedy(
            RepairAction.REBOOT, "journalctl -k -b | grep -e Oops -e BUG -e lockup shows where; drain the node, reboot"
        ),
    )
