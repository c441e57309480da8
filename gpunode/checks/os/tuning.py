"""How the kernel is tuned for speed: huge pages, and the frequency of the CPUs. Mostly to be known, not to be right."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.remedy import Remedy, RepairAction

OWN_KERNEL = (needs.gpu, needs.machine, needs.system)
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
GOVERNORS = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
FULL_SPEED = "performance"
FOR_SPEED = ("hgx",)  # the profiles of nodes whose GPUs wait for their CPUs
TUNED = Remedy(
    RepairAction.CONFIGURE,
    "tuned-adm profile accelerator-performance, with tuned installed; or cpupower frequency-set -g performance",
)


@check(
    "os.hugepages-thp",
    Severity.WARNING,
    title="whether the kernel gives transparent huge pages",
    reads=THP,
    remedy=Remedy(RepairAction.NONE, "nothing: which is faster depends on the programs"),
    needs=OWN_KERNEL,
)
def hugepages_thp(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """Informative: whether programs get transparent huge pages always, when they ask for them, or never."""
    thp = host.system.thp if host.system else None
    return Passed(f"{THP}: {thp}") if thp else NotApplicable(f"{THP} is not there, or was not read")


@check(
    "os.cpu-governor",
    Severity.WARNING,
    title="the CPUs of an HGX node run at full speed",
    reads=GOVERNORS,
    remedy=TUNED,
    needs=OWN_KERNEL,
)
def cpu_governor(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """CPUs of an HGX node save power: its eight GPUs wait for them. On other nodes it is only said."""
    found = host.system.governors if host.system else None
    if found is None:
        return NotApplicable("the CPUs' governors are not in this recording")
    if not found:
        return NotApplicable("the kernel has no cpufreq here, as in most virtual machines")
    if set(found) == {FULL_SPEED} or context.profile_of(host) not in FOR_SPEED:
        return Passed(_counted(found))
    return Finding(
        "the CPUs do not run at full speed",
        evidence=f"{GOVERNORS}: {_counted(found)}",
        remedy=TUNED,
    )


def _counted(governors: Mapping[str, int]) -> str:
    ordered = sorted(governors.items(), key=lambda one: (-one[1], one[0]))
    return listing(f"{many} × {name}" for name, many in ordered)
