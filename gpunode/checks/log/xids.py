"""Xids: errors of GPUs by NVIDIA's numbers. A program's own fault is no fault of the node."""

from __future__ import annotations

from collections.abc import Callable

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.log.lines import is_over
from gpunode.checks.log.seen import WEIGHT, gpu_at, is_old, own_kernel, remedy_for, said_elsewhere, when
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.kernel_log import LoggedXid
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction
from gpunode.values import dataclass

NEEDS = (needs.gpu, own_kernel, needs.kernel_log)
NVLINK5 = range(144, 151)
RECOVERY = 154
# What the driver says a GPU needs (nvmlDeviceGpuRecoveryAction_t).
ASKED = {
    "Reboot": RepairAction.REBOOT,
    "Reset": RepairAction.RESET_GPU,
    "Drain and Reset": RepairAction.RESET_GPU,
    "Drain P2P": RepairAction.WAIT,
    "another one": RepairAction.SUPPORT,
}


@dataclass(frozen=True)
class Judged:
    """One Xid at one GPU, and what it means there."""

    xid: LoggedXid
    gpu: str  # "0000:1c:00.0"
    severity: Severity
    action: RepairAction
    meaning: str

    @property
    def rank(self) -> tuple[bool, int]:
        return self.severity is Severity.WARNING, WEIGHT.index(self.action)


@check(
    "health.xid-recent",
    Severity.ERROR,
    title="no GPU met an error that it does not get over",
    reads="the kernel log: NVRM: Xid, by NVIDIA's catalogue of Xids",
    remedy=Remedy(RepairAction.RESET_GPU, "what NVIDIA's catalogue asks for: nvidia-smi --gpu-reset, a reboot, hands"),
    needs=NEEDS,
)
def xid_recent(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU met an error that asks for a reset, a reboot or hands; as a warning: a program made one, or it is past.

    What a program did wrong is for its owner. What the catalogue asks nothing for is no finding, nor is what another
    check says more of: a GPU that is off the bus, or for which nvidia-smi names the recovery.
    """
    return _worst(host, _judged)


@check(
    "health.xid-extended",
    Severity.ERROR,
    title="no NVLink failed for good, and the driver asks for no recovery",
    reads="the kernel log: Xids 144 to 150 with their own severity, and 154 with the recovery it names",
    remedy=Remedy(RepairAction.RESET_GPU, "what the line names: nvidia-smi --gpu-reset, or a reboot"),
    needs=NEEDS,
)
def xid_extended(host: HostFacts, context: Context) -> CheckOutcome:
    """An NVLink of a GPU failed for good, or the driver names what the GPU needs to recover."""
    explained = {one.gpu for one in _all(host, _judged) if one.severity is Severity.ERROR}
    return _worst(host, lambda host, xid: None if gpu_at(host, xid.address) in explained else _told(host, xid))


Judge = Callable[[HostFacts, LoggedXid], "Judged | None"]


def _judged(host: HostFacts, xid: LoggedXid) -> Judged | None:
    """By the catalogue; None for what asks for nothing, or says itself how bad it is."""
    from gpunode.catalog.xids import xids

    row, gpu = xids().get(xid.code), gpu_at(host, xid.address)
    if row is None:
        unknown = "NVIDIA's catalogue does not have this number"
        return None if is_over(host, xid.last_s) else Judged(xid, gpu, Severity.WARNING, RepairAction.SUPPORT, unknown)
    if row.severity in ("none", "message") or (row.of_a_program and is_over(host, xid.last_s)):
        return None
    asked = _recovery(host, xid)
    past = is_over(host, xid.last_s) or is_old(host, xid.last_s) or asked is RepairAction.NONE
    severity = Severity.ERROR if row.severity == "error" and not past else Severity.WARNING
    action = asked if asked and severity is Severity.ERROR else row.action
    return Judged(xid, gpu, severity, action, row.meaning)


def _recovery(host: HostFacts, xid: LoggedXid) -> RepairAction | None:
    """What the driver said behind this Xid that the GPU needs; None: it said nothing."""
    behind = [one for one in host.log.xids if one.code == RECOVERY and one.address == xid.address and one.recovery]
    if not behind or (xid.last_s or 0) > (behind[-1].last_s or 0):
        return None
    return ASKED.get(behind[-1].recovery or "", RepairAction.NONE)


def _told(host: HostFacts, xid: LoggedXid) -> Judged | None:
    """What a line says itself."""
    past = is_over(host, xid.last_s) or is_old(host, xid.last_s)
    severity, gpu = Severity.WARNING if past else Severity.ERROR, gpu_at(host, xid.address)
    if xid.code == RECOVERY and xid.recovery in ASKED and not past:
        return Judged(xid, gpu, severity, ASKED[xid.recovery], f"the driver says what it needs: {xid.recovery}")
    if xid.code in NVLINK5 and xid.fatal:
        link = "NVLink" if xid.link is None else f"NVLink {xid.link}"
        return Judged(xid, gpu, severity, RepairAction.RESET_GPU, f"{link} failed, which is fatal")
    if xid.code in NVLINK5 and xid.fatal is None and not past:
        unread = "it says itself how bad it is, in a form that is not known here"
        return Judged(xid, gpu, Severity.WARNING, RepairAction.SUPPORT, unread)
    return None


def _all(host: HostFacts, judge: Judge) -> list[Judged]:
    """The worst first."""
    return sorted((one for xid in host.log.xids if (one := judge(host, xid))), key=lambda one: one.rank)


def _worst(host: HostFacts, judge: Judge) -> CheckOutcome:
    everywhere, elsewhere = _all(host, judge), said_elsewhere(host)
    found = [one for one in everywhere if one.gpu not in elsewhere]
    if everywhere and not found:
        first = everywhere[0]
        return NotApplicable(f"Xid {first.xid.code} of {first.gpu} is part of what {elsewhere[first.gpu]} finds")
    if not found:
        return None
    # Of one GPU the worst: the others came with it.
    shown = list({one.gpu: one for one in reversed(found)}.values())[::-1]
    worst = found[0]
    return Finding(
        "; ".join(_sentence(one) for one in sorted(shown, key=lambda one: one.rank)[:3]),
        evidence=f"kernel log: {listing(map(_quoted, found), 4, between='; ', what='others')}",
        remedy=remedy_for(host, worst.action, worst.gpu),
        severity=None if worst.severity is Severity.ERROR else Severity.WARNING,
        entities=pci(*dict.fromkeys(one.gpu for one in found)),
    )


def _sentence(one: Judged) -> str:
    whose = "a program on " if one.action is RepairAction.NONE and one.severity is Severity.WARNING else ""
    return f"{whose}{one.gpu} met Xid {one.xid.code}: {one.meaning}"


def _quoted(one: Judged) -> str:
    return f"Xid {one.xid.code} of {one.gpu} {when(one.xid.count, one.xid.last_s)}"
