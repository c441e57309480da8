"""Was what the host answered understood? What was not is no fault that another check could name, and no health."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks.registry import Context, check
from gpunode.model.facts import DriverFacts, HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, gpunode

# Most checks need one of these, and none of them has a verdict without.
DECIDES = {"pci": "the PCI bus", "driver": "the driver", "runtimes": "the engines", "kernel_log": "the kernel's log"}
REPORT = Remedy(RepairAction.SUPPORT, "check again; where it stays, report it with what ",
                gpunode("check", "--bundle", "FILE"), " saves")  # fmt: skip


@check(
    "os.answers-understood",
    Severity.ERROR,
    title="what the host answers about GPUs, driver, engines and the kernel's log is understood",
    reads="the probe's own answers",
    remedy=REPORT,
)
def answers_understood(host: HostFacts, context: Context) -> CheckOutcome:
    """What decides about the GPUs was read and not understood: whether they work is not known."""
    found = {section: why for section, why in host.misread.items() if section in DECIDES}
    if not found and not (host.pci or host.runtimes or host.driver != DriverFacts()):
        return NotApplicable("no GPU, driver or engine answered")
    if not found:
        return None
    return Finding(
        f"what the host says of {listing(map(DECIDES.__getitem__, found))} was not understood",
        evidence="; ".join(f"{section}: {why}" for section, why in found.items()),
        remedy=REPORT,
    )
