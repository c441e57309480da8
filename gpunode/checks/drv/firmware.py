"""The GPU's own firmware (GSP), which the driver brings with it and without which open modules do not work."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.log.lines import since_loaded
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

OFF = "0"


@check(
    "drv.gsp-firmware",
    Severity.ERROR,
    title="the driver found the GPU's firmware",
    reads="the kernel log: Direct firmware load for nvidia/... failed",
    remedy=Remedy(RepairAction.UPGRADE, "reinstall the driver's packages: the firmware is part of them"),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.kernel_log),
)
def gsp_firmware(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver did not find the firmware that it loads into the GPU."""
    named = [file for file in host.log.firmware_missing if file.rpartition("/")[2].startswith("gsp")]
    missing = [file for file in named if not _was_found_since(host, file)]
    if not missing:
        return None
    return Finding(
        "the driver did not find the GPU's firmware",
        evidence=f"kernel log: Direct firmware load failed for {listing(missing, 2)}",
        remedy=Remedy(
            RepairAction.UPGRADE,
            "reinstall the packages of the driver, firmware among them, in the version that is loaded; then reboot",
        ),
    )


def _was_found_since(host: HostFacts, file: str) -> bool:
    """The driver was loaded again, and did not miss it then."""
    lines = [line for line in host.driver.kernel_log if file in line]
    return bool(lines) and not since_loaded(host, lines)


@check(
    "drv.gsp-policy",
    Severity.WARNING,
    title="open modules may use the GPU's firmware",
    reads="/proc/driver/nvidia/params: EnableGpuFirmware",
    remedy=Remedy(RepairAction.CONFIGURE, "remove NVreg_EnableGpuFirmware=0 from modprobe.d, and reboot"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def gsp_policy(host: HostFacts, context: Context) -> CheckOutcome:
    """An option switches the GPU's firmware off, and the open modules that are loaded do not work without it."""
    if host.driver.loaded_flavour != "open":
        return NotApplicable("the loaded modules are not the open ones, which alone need the firmware")
    value = host.driver.params.get("EnableGpuFirmware")
    if value is None:
        return NotApplicable("/proc/driver/nvidia/params does not show EnableGpuFirmware")
    if value != OFF:
        return None
    return Finding(
        "the GPU's firmware is switched off, and open modules need it",
        evidence="/proc/driver/nvidia/params: EnableGpuFirmware: 0",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "remove NVreg_EnableGpuFirmware=0 from modprobe.d and the kernel command line, and reboot",
        ),
    )
