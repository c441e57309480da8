"""What gpunode itself knows: whether its tables are recent enough to decide by."""

from __future__ import annotations

from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, gpunode

STALE = Remedy(
    RepairAction.NONE,
    "install a newer gpunode on the machine that runs it; ",
    gpunode("catalog", "--stale", ssh=False),
    " lists the rows that are old",
)


@check(
    "catalog.age",
    Severity.WARNING,
    title="gpunode's catalog was looked up in the last 180 days",
    reads="the newest date in gpunode's catalog, against the clock of the machine that runs gpunode",
    remedy=STALE,
)
def age(host: HostFacts, context: Context) -> CheckOutcome:
    """The catalog that decides on branches, end of support and CVEs is out of date."""
    from gpunode.catalog.age import STALE_DAYS, newest_row

    # Not the host's clock: the catalog is this machine's, and a host that lost its clock would be warned of or spared.
    if context.today is None:
        return NotApplicable("today's date is not known")
    newest = newest_row(context.catalog)
    days = (context.today - newest).days
    if days < -1:  # a row of today may be of tomorrow in another time zone
        return NotApplicable(f"the clock says {context.today}, and the catalog's newest row is of {newest}")
    if days <= STALE_DAYS:
        return None
    return Finding(
        f"gpunode's catalog is {days} days old: newer drivers, ends of support and CVEs are not known to it",
        evidence=f"its newest row was looked up on {newest}; today is {context.today}",
        remedy=STALE,
    )
