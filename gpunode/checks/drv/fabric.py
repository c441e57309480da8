"""The service that brings up the links between GPUs on boards with NVSwitches."""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

UNIT = "nvidia-fabricmanager.service"
START = f"systemctl enable --now {UNIT}; journalctl -b -u {UNIT} shows why it stops"


@check(
    "drv.fabric-manager",
    Severity.ERROR,
    title="the fabric manager runs where NVSwitches are",
    reads=f"{UNIT} of systemd; NVSwitches on the PCI bus",
    remedy=Remedy(RepairAction.RESTART_SERVICE, START),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def fabric_manager(host: HostFacts, context: Context) -> CheckOutcome:
    """The fabric manager does not run, so CUDA does not start on this board (system not yet initialized)."""
    if not context.catalog.nvswitches(host):
        return NotApplicable("no NVSwitch on the PCI bus")
    unit = host.services.get(UNIT)
    if host.init != "systemd" or unit is None:
        return NotApplicable("the state of its unit was not read")
    if unit.active in ("active", "activating", "reloading"):
        return None
    if unit.load == "not-found":
        return Finding(
            "the fabric manager is not installed",
            evidence=f"{UNIT} is not found, and the board has NVSwitches",
            remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver")),
            fix="driver",
        )
    return Finding(
        f"the fabric manager is {unit.active}",
        evidence=f"{UNIT}: ActiveState {unit.active}, SubState {unit.sub}, {unit.enabled or 'no'} unit file",
        remedy=Remedy(RepairAction.RESTART_SERVICE, START),
    )
