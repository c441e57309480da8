"""Is the distribution's release still looked after?"""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction


@check(
    "os.supported",
    Severity.WARNING,
    title="the distribution's release gets security updates",
    reads="/etc/os-release against catalog/distro_ends.yaml",
    remedy=Remedy(RepairAction.UPGRADE, "upgrade the node to a newer release of the distribution"),
    needs=(needs.gpu,),
)
def supported(host: HostFacts, context: Context) -> CheckOutcome:
    """The distribution's release has reached its end of life: no kernel, engine or library of it is mended any more."""
    from gpunode.catalog.distro_ends import distro_end

    name = host.os.pretty_name or f"{host.os.id} {host.os.version_id}".strip()
    row = distro_end(host.os)
    if row is None or context.today is None:
        return NotApplicable(f"until when {name} gets updates is not known")
    if not row.is_over(context.today):
        return None
    if row.is_paid_for(context.today):
        return NotApplicable(f"{name} gets updates only with {row.paid}, until {row.until}; who has it is not known")
    return Finding(
        f"{name} gets no more security updates",
        evidence=f"they ended on {row.until or row.end}; {row.source}",
        remedy=Remedy(RepairAction.UPGRADE, "upgrade the node to a newer release of the distribution"),
    )
