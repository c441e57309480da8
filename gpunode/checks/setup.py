"""Whether setup can do what the findings ask for. Its refusals are findings, in the planner's own words.

No check imports the planner: `gpunode check` hands in what plans, and checks/agreement.py puts the answers here.
"""

from __future__ import annotations

from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, gpunode

NOT_ASKED = NotApplicable("no finding asks setup for it")


def _shown(part: str) -> Remedy:
    return Remedy(RepairAction.NONE, gpunode("plan", "--only", part), " shows what it is refused for")


@check(
    "setup.driver",
    Severity.ERROR,
    title="setup can install the driver that is missing",
    reads="the plan for the driver alone",
    remedy=_shown("driver"),
)
def driver(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver is missing, and setup refuses to install one on this host."""
    return NOT_ASKED


@check(
    "setup.toolkit",
    Severity.ERROR,
    title="setup can install the toolkit that is missing",
    reads="the plan for the toolkit alone",
    remedy=_shown("toolkit"),
)
def toolkit(host: HostFacts, context: Context) -> CheckOutcome:
    """The container toolkit is missing, and setup refuses to install it on this host."""
    return NOT_ASKED


@check(
    "setup.runtime",
    Severity.ERROR,
    title="setup can configure the engines that have no nvidia runtime",
    reads="the plan for the engines alone",
    remedy=_shown("runtime"),
)
def runtime(host: HostFacts, context: Context) -> CheckOutcome:
    """A container engine is not as it should be, and setup refuses to configure it."""
    return NOT_ASKED


@check(
    "setup.kubernetes",
    Severity.ERROR,
    title="setup can prepare the node for what gives out its GPUs",
    reads="the plan for Kubernetes alone",
    remedy=_shown("kubernetes"),
)
def kubernetes(host: HostFacts, context: Context) -> CheckOutcome:
    """The node is not ready for what shall give out its GPUs, and setup refuses to prepare it."""
    return NOT_ASKED
