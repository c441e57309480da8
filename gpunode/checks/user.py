"""The driver's user space: nvidia-smi and the libraries that CUDA programs load."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.drv.loaded import COMPAT, ONE_VERSION
from gpunode.checks.health.board import INFOROM_CORRUPT
from gpunode.checks.registry import Context, check
from gpunode.checks.words import driver_version, typed_for
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiFacts
from gpunode.model.versions import driver_numbers
from gpunode.remedy import Remedy, RepairAction

NO_DEVICES, MISMATCH = 6, 18
# Setup keeps an installed driver as it is, whichever of its packages are there.
LIBRARY = "ldconfig; if it is still missing, install what it comes in: {}, in the driver's version"
CUDA, NVML = (f"{name}, libnvidia-compute or nvidia-driver-cuda-libs" for name in ("libcuda1", "libnvidia-ml1"))
CAUSES = {
    4: Remedy(RepairAction.CONFIGURE, "insufficient permissions; check the modes of /dev/nvidia*"),
    8: Remedy(RepairAction.REPLACE, "a GPU has no external power; check its cables"),
    9: Remedy(RepairAction.RELOAD_MODULE, "the nvidia module is not loaded; modprobe nvidia reports why"),
    12: Remedy(RepairAction.UPGRADE, f"libnvidia-ml.so.1 was not found; {LIBRARY.format(NVML)}"),
    15: Remedy(RepairAction.POWER_CYCLE, "a GPU has fallen off the bus; power the node off and on"),
    MISMATCH: Remedy(
        RepairAction.REBOOT, "the libraries are newer than the loaded module; drain the node and reboot it"
    ),
    124: Remedy(RepairAction.REBOOT, "it hangs: journalctl -k -b | grep -e NVRM -e Xid; a reboot frees it"),
    127: Remedy(
        RepairAction.UPGRADE,
        "install what nvidia-smi comes in: nvidia-smi, nvidia-utils or nvidia-driver-cuda, in the driver's version",
    ),
}
UNKNOWN = Remedy(RepairAction.SUPPORT, "journalctl -k -b | grep -e NVRM -e Xid")
SUMMARIES = {
    0: "nvidia-smi ends well, and nothing that it prints is its answer",
    124: "nvidia-smi does not answer in time",
}
LIBRARIES = (needs.gpu, needs.host_driver, needs.module, needs.read("ldconfig"))


def _found_no_device(smi: SmiFacts) -> bool:
    return smi.code == NO_DEVICES or "No devices were found" in smi.message


@check(
    "user.smi-works",
    Severity.ERROR,
    title="nvidia-smi answers",
    reads="nvidia-smi -q -x, with a limit",
    remedy=Remedy(
        RepairAction.SUPPORT,
        "its exit code names the cause: 9 module not loaded, 18 version mismatch, 15 GPU off the bus, 124 hangs",
    ),
    needs=(needs.gpu, needs.host_driver, needs.smi_ran),
)
def smi_works(host: HostFacts, context: Context) -> CheckOutcome:
    """nvidia-smi fails or hangs."""
    smi = host.driver.smi
    if smi is None or (smi.code == 0 and smi.answered and not _found_no_device(smi)):
        return None
    if _found_no_device(smi) and not host.root:
        return NotApplicable("nvidia-smi saw no device, and it did not run as root (user.smi-hidden)")
    if any(gpu.fault in ("lost", "reset-required") for gpu in smi.gpus):
        sick = "health.gpu-lost" if smi.lost else "health.reset-required"
        return None if smi.answered else NotApplicable(f"nvidia-smi stops at a GPU that it cannot open ({sick})")
    if smi.code == INFOROM_CORRUPT and smi.answered:
        return None  # it answers, with a warning (health.inforom)
    message = f": {smi.message.strip()}" if smi.message.strip() else ""
    return Finding(
        SUMMARIES.get(smi.code, f"nvidia-smi ends with code {smi.code}"),
        evidence=f"nvidia-smi -q -x, exit {smi.code}{message}",
        remedy=_remedy(host, smi.code),
        entities=pci(*(d.address for d in host.gpus)) if _found_no_device(smi) else (),
    )


def _remedy(host: HostFacts, code: int) -> Remedy:
    if code == MISMATCH and host.driver.installed == host.driver.loaded:
        return ONE_VERSION
    return CAUSES.get(code, UNKNOWN)


@check(
    "user.smi-hidden",
    Severity.WARNING,
    title="nothing hides the GPUs from this login",
    reads="nvidia-smi -q -x against the PCI bus",
    remedy=Remedy(RepairAction.NONE, "run gpunode as root, or inside the job that was given the GPUs"),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.smi_ran),
)
def smi_hidden(host: HostFacts, context: Context) -> CheckOutcome:
    """nvidia-smi sees no GPU because this login may not, not because they are broken."""
    if host.root:
        return NotApplicable("the probe ran as root, which sees every GPU")
    if host.driver.smi is None or not _found_no_device(host.driver.smi):
        return None
    bound = [d.address for d in host.gpus if d.driver == "nvidia"]
    if not bound:
        return NotApplicable("no GPU is bound to nvidia (pci.driver-bound)")
    return Finding(
        "nvidia-smi sees no GPU, the driver holds some",
        evidence=f"nvidia-smi: No devices were found; bound to nvidia: {listing(bound)}",
        remedy=Remedy(
            RepairAction.NONE,
            "run gpunode as root, or inside the job that was given the GPUs (srun); then check again",
        ),
    )


@check(
    "user.libcuda",
    Severity.ERROR,
    title="programs find libcuda",
    reads="ldconfig -p",
    remedy=Remedy(RepairAction.UPGRADE, LIBRARY.format(CUDA)),
    needs=LIBRARIES,
)
def libcuda(host: HostFacts, context: Context) -> CheckOutcome:
    """No CUDA program starts: the loader finds no libcuda.so.1."""
    return _resolvable(host, "libcuda.so.1", CUDA)


@check(
    "user.libnvml",
    Severity.ERROR,
    title="programs find libnvidia-ml",
    reads="ldconfig -p",
    remedy=Remedy(RepairAction.UPGRADE, LIBRARY.format(NVML)),
    needs=LIBRARIES,
)
def libnvml(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin and nvidia-smi cannot start: the loader finds no libnvidia-ml.so.1."""
    return _resolvable(host, "libnvidia-ml.so.1", NVML)


def _resolvable(host: HostFacts, soname: str, packages: str) -> CheckOutcome:
    if host.driver.libraries.get(soname):
        return None
    return Finding(
        f"the loader does not find {soname}",
        evidence=f"ldconfig -p has no line for {soname}",
        remedy=Remedy(RepairAction.UPGRADE, LIBRARY.format(packages)),
    )


@check(
    "user.stale-libs",
    Severity.WARNING,
    title="no stale driver libraries on the loader path",
    reads="ldconfig -p, the real paths of libcuda.so.1 and libnvidia-ml.so.1",
    remedy=Remedy(RepairAction.UPGRADE, "remove the leftovers of the older installer, then ldconfig"),
    needs=LIBRARIES,
)
def stale_libs(host: HostFacts, context: Context) -> CheckOutcome:
    """Libraries of another driver version are on the loader's path."""
    paths = [p for so in ("libcuda.so.1", "libnvidia-ml.so.1") for p in host.driver.libraries.get(so, ())]
    current = host.driver.loaded or host.driver.installed
    versioned = {p: v for p in paths if (v := driver_version(p.rpartition("/")[2])) is not None}
    versioned = {p: v for p, v in versioned.items() if not _bridges(p, v, current)}
    if not versioned:
        return NotApplicable("no driver library with a version in its name is on the loader's path")
    if len(set(versioned.values())) == 1:
        return None
    stale = [p for p, v in versioned.items() if v != current] or list(versioned)
    return Finding(
        f"driver libraries of {len(set(versioned.values()))} versions are on the loader's path",
        evidence=listing(sorted(versioned)),
        remedy=Remedy(
            RepairAction.UPGRADE,
            f"{typed_for(host, 'owner', stale[0])} names the owner; remove what no package owns, then ldconfig",
        ),
    )


def _bridges(path: str, version: str, current: str | None) -> bool:
    """A libcuda of forward compatibility that is newer than the driver, as it is meant to be; an older one is left
    over from before an upgrade, and keeps programs from the driver's own.
    """
    return COMPAT in path and driver_numbers(version) > driver_numbers(current)
