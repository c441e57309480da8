"""What somebody decided about the driver: the flavour on disk, GPUs that it leaves out, the licence of a vGPU."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.health.seen import READS, SMI, about, known, named, quoted
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

LOADED = (needs.gpu, needs.host_driver, needs.loaded)
LEFT_OUT = ("ExcludedGpus", "GpuBlacklist")  # the second until branch 455
LICENCE = Remedy(
    RepairAction.CONFIGURE,
    "put the client's token into /etc/nvidia/ClientConfigToken and systemctl restart nvidia-gridd; journalctl -u "
    "nvidia-gridd says why the licence server gave none (a clock that is off is enough)",
)


def excluded(host: HostFacts) -> tuple[str, ...]:
    """UUIDs of the GPUs that a module option keeps from every program."""
    words = (host.driver.params.get(key, "") for key in LEFT_OUT)
    return tuple(uuid.strip() for word in words for uuid in word.split(",") if uuid.strip())


@check(
    "drv.excluded-gpus",
    Severity.WARNING,
    title="the driver leaves out no GPU",
    reads="ExcludedGpus in /proc/driver/nvidia/params",
    remedy=Remedy(RepairAction.CONFIGURE, "take NVreg_ExcludedGpus out of /etc/modprobe.d, then reboot"),
    needs=LOADED,
)
def excluded_gpus(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is kept from every program by an option of the module: it works, and nvidia-smi does not list it."""
    if not any(key in host.driver.params for key in LEFT_OUT):
        return NotApplicable("/proc/driver/nvidia/params does not show ExcludedGpus")
    out = excluded(host)
    if not out:
        return None
    return Finding(
        f"the driver leaves out {len(out)} GPU{'s' if len(out) > 1 else ''}, as an option says",
        evidence=f"/proc/driver/nvidia/params: ExcludedGpus: {listing(out)}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "where that is not wanted any more, take NVreg_ExcludedGpus out of /etc/modprobe.d, then reboot",
        ),
    )


@check(
    "drv.flavour",
    Severity.WARNING,
    title="the module in memory and the one on disk have one flavour",
    reads="/proc/driver/nvidia/version against modinfo -F license nvidia",
    remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it, or install the other flavour again"),
    needs=LOADED,
)
def flavour(host: HostFacts, context: Context) -> CheckOutcome:
    """The module on disk is open and the one that runs proprietary, or the other way round: the next boot changes it.

    An error where a GPU of this host cannot work with the one on disk.
    """
    runs, next_one = host.driver.loaded_flavour, host.driver.installed_flavour
    if runs is None or next_one is None:
        return NotApplicable("whether the modules are open or proprietary is not known")
    if runs == next_one:
        return None
    catalog = context.catalog
    lost = [d.address for d in host.gpus if catalog.flavour(catalog.gpu_model(d.device)) not in ("either", next_one)]
    return Finding(
        f"the module that runs is {runs}, the one on disk {next_one}"
        + (f": the next boot loses {listing(lost)}" if lost else ""),
        evidence=f"/proc/driver/nvidia/version: {runs}; modinfo -F license nvidia: {next_one}",
        remedy=Remedy(
            RepairAction.UPGRADE if lost else RepairAction.REBOOT,
            "install modules of the flavour that runs before the next reboot"
            if lost
            else "drain the node and reboot it",
        ),
        severity=Severity.ERROR if lost else None,
        entities=pci(*lost),
    )


@check(
    "drv.vgpu",
    Severity.WARNING,
    title="every vGPU has its licence",
    reads=READS.format("vgpu_software_licensed_product/license_status"),
    remedy=LICENCE,
    needs=SMI,
)
def vgpu(host: HostFacts, context: Context) -> CheckOutcome:
    """A vGPU has no licence: NVIDIA's driver slows it down, and CUDA may be off."""
    shares = {device.address for device in host.gpus if device.vgpu}
    if not shares:
        return NotApplicable("no GPU here is a vGPU")
    states = known(host, lambda gpu: gpu.health.use.licence if gpu.pci_address in shares else None, "licence")
    if isinstance(states, NotApplicable):
        return states
    bare = [gpu for gpu, state in states if state.startswith("Unlicensed")]
    # For the first minutes after a boot it works in full, while it asks the licence server.
    slowed = [gpu for gpu in bare if "(Unrestricted)" not in (gpu.health.use.licence or "")]
    if not slowed:
        return NotApplicable(f"{named(bare)} has no licence yet, and is not slowed down yet") if bare else None
    return Finding(
        f"{named(slowed)} has no vGPU licence and is slowed down",
        evidence=quoted(slowed[0], f"license_status: {slowed[0].health.use.licence}"),
        remedy=LICENCE,
        entities=about(slowed),
    )
