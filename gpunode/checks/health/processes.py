"""Programs at the GPUs that neither work nor go away."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.log.seen import is_old, own_kernel
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts, StuckProcess
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

HANGS_S = 60  # half of what the kernel's own detector waits for (hung_task_timeout_secs)
REBOOT = Remedy(
    RepairAction.REBOOT,
    "journalctl -k -b | grep -e NVRM -e Xid shows what it waits for; drain the node and reboot it, since such a "
    "process cannot be killed",
)


@check(
    "health.processes-stuck",
    Severity.ERROR,
    title="no program hangs that holds a GPU, and none is dead and still there",
    reads="/proc/PID/stat of what holds /dev/nvidia* and of zombies, twice; the kernel log",
    remedy=REBOOT,
    needs=(needs.gpu, own_kernel, needs.loaded, needs.read("busy", "stuck")),
)
def processes_stuck(host: HostFacts, context: Context) -> CheckOutcome:
    """A program that holds a GPU hangs in the kernel; or, as a warning, it has ended and its GPU may not be free yet.

    Whoever reads a file waits in the kernel for moments: a wait counts where it is the same at both looks, and where
    nvidia-smi or the kernel's log shows that the driver hangs, or it has lasted for a minute.
    """
    if not host.root:
        return NotApplicable("only root sees which processes hold the GPUs")
    seen = host.driver.stuck
    if seen is None:
        return NotApplicable("a recording of an older gpunode does not say")
    waiting, dead = ([one for one in seen if one.state == state] for state in "DZ")
    signs = _signs(host)
    hung = [one for one in waiting if signs or one.seconds >= HANGS_S]
    if hung:
        return _hang(hung, signs)
    if dead:
        return _ended(dead)
    if waiting and (unread := needs.kernel_log(host)):
        return NotApplicable(f"{_named(waiting)} waits in the kernel; whether it hangs is not known: {unread}")
    return None


def _signs(host: HostFacts) -> tuple[str, ...]:
    """That the driver hangs, by others than the process itself."""
    smi, log = host.driver.smi, host.log
    in_log = log.hung_in_driver and not is_old(host, log.hung_last_s)
    return (
        *((f"kernel log: {log.hung_in_driver} × blocked for more than, with [nvidia] on the stack",) if in_log else ()),
        *(("nvidia-smi did not answer within its limit",) if smi is not None and smi.code == 124 else ()),
    )


def _hang(hung: Sequence[StuckProcess], signs: Sequence[str]) -> Finding:
    told = f"/proc/{hung[0].pid}/stat: D, the same wait at two looks {hung[0].seconds} s apart"
    verb = "hangs in the kernel, and holds" if len(hung) == 1 else "hang in the kernel, and hold"
    return Finding(f"{_named(hung)} {verb} a GPU", evidence="; ".join((told, *signs)), remedy=REBOOT)


def _ended(dead: Sequence[StuckProcess]) -> Finding:
    """What a thread of its own keeps comes first: only a reboot ends that."""
    first = next((one for one in dead if one.parent is None), dead[0])
    why = "a thread of it" if first.parent is None else f"its parent {first.parent}"
    collect = Remedy(
        RepairAction.WAIT,
        f"it goes when its parent ({first.parent}) collects it: end that; where it stays, drain the node and reboot it",
    )
    has, remains = ("has", "is") if len(dead) == 1 else ("have", "are")
    return Finding(
        f"{_named(dead)} {has} ended, and {remains} still there",
        evidence=f"/proc/{first.pid}/stat: Z at two looks {first.seconds} s apart; {why} holds /dev/nvidia*",
        remedy=REBOOT if first.parent is None else collect,
        severity=Severity.WARNING,
    )


def _named(processes: Sequence[StuckProcess]) -> str:
    return listing((f"{one.pid} {one.command}" for one in processes), 3)
