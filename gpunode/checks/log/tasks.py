"""Tasks of the host that do not come back from the kernel."""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.checks.log.machine import NO_COUNTERS
from gpunode.checks.log.seen import is_old, own_kernel
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, Severity
from gpunode.remedy import Remedy, RepairAction


@check(
    "os.hung-tasks",
    Severity.WARNING,
    title="no task of the host hung during the last day",
    reads="the kernel log: tasks blocked for minutes; those in the driver are health.hang-detector's",
    remedy=Remedy(RepairAction.SUPPORT, "journalctl -k -b shows what they waited for: usually a disk or NFS"),
    needs=(needs.gpu, own_kernel, needs.kernel_log),
)
def hung_tasks(host: HostFacts, context: Context) -> CheckOutcome:
    """Tasks waited for minutes in the kernel, for a disk or a file system that does not answer; not in the driver."""
    if host.kernel_state is None:
        return NO_COUNTERS
    log = host.log
    others = log.hung_tasks - log.hung_in_driver
    if others <= 0 or is_old(host, log.hung_last_s):
        return None
    last = "" if log.hung_last_s is None else f", the last {log.hung_last_s} s after boot"
    return Finding(
        f"{others} task{'s' if others > 1 else ''} waited for minutes in the kernel",
        evidence=f"kernel log: {others} × blocked for more than{last}, with nothing of the driver on the stack",
        remedy=Remedy(
            RepairAction.SUPPORT,
            "journalctl -k -b | grep -A 20 'blocked for more than' shows what they waited for: a disk, NFS, a lock",
        ),
    )
