"""What the driver itself says of a GPU's health, GPU by GPU: lost, waiting for a reset or reboot, unreadable."""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.checks.health.seen import SMI, UNLISTED, about, address, named
from gpunode.checks.pci import fallen
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts, SmiGpu
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

BACK = (
    "power the node off and on (a warm reboot is often not enough); when it happens again, check power cables and "
    "riser, then replace the GPU"
)
XID = "journalctl -k -b | grep -e NVRM -e Xid shows the cause"
# What the driver asks for, the heaviest first (nvidia-smi(1), GPU Recovery Action).
RECOVERIES = {
    "Reboot": (RepairAction.REBOOT, "drain the node and reboot it"),
    "Reset": (RepairAction.RESET_GPU, "stop all that runs on it, then {reset}; reboot where the reset is refused"),
    "Drain and Reset": (
        RepairAction.RESET_GPU,
        "give it no new work, let what runs on it end, then {reset}; reboot where the reset is refused",
    ),
    "Drain P2P": (
        RepairAction.WAIT,
        "stop the programs whose GPUs talk to each other (NVLink, P2P); it has recovered when nvidia-smi says None",
    ),
}
OTHER = (RepairAction.SUPPORT, f"nvidia-smi -q names the action; {XID}")


@check(
    "health.gpu-lost",
    Severity.ERROR,
    title="nvidia-smi reaches every GPU",
    reads="nvidia-smi -q -x",
    remedy=Remedy(RepairAction.POWER_CYCLE, BACK),
    needs=SMI,
)
def gpu_lost(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is lost: the driver cannot reach it any more."""
    smi = host.driver.smi
    if smi is None or not smi.gpus:
        return UNLISTED
    lost = [gpu for gpu in smi.lost if gpu.pci_address not in fallen(host)]
    if smi.lost and not lost:
        return NotApplicable("what nvidia-smi calls lost has fallen off the bus (pci.fallen-off-bus)")
    if not lost:
        return None if smi.answered else UNLISTED
    return Finding(
        f"{named(lost)} is lost: nvidia-smi cannot reach it",
        evidence=f"nvidia-smi -q -x: {lost[0].fault_fields[0]}",
        remedy=Remedy(RepairAction.POWER_CYCLE, f"{XID}; {BACK}"),
        entities=about(lost),
    )


@check(
    "health.recovery-action",
    Severity.ERROR,
    title="no GPU waits for a reset or a reboot",
    reads="gpu_recovery_action, gpu_reset_status and GPU requires reset in nvidia-smi -q -x",
    remedy=Remedy(RepairAction.RESET_GPU, "stop all that runs on it, then nvidia-smi --gpu-reset -i its address"),
    needs=SMI,
)
def recovery_action(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has met an error that it recovers from only by a reset or a reboot."""
    smi = host.driver.smi
    if smi is None or not smi.gpus:
        return UNLISTED
    waiting = [(gpu, action) for gpu in smi.gpus if gpu.fault != "lost" and (action := _asks_for(gpu))]
    if not waiting:
        return None if smi.answered else UNLISTED
    heaviest = [*RECOVERIES, *(action for _, action in waiting)].index
    gpu, action = min(waiting, key=lambda one: heaviest(one[1]))
    repair, how = RECOVERIES.get(action, OTHER)
    said = gpu.fault_fields[0] if gpu.fault == "reset-required" else f"gpu_recovery_action: {action}"
    return Finding(
        "; ".join(f"{named([one])} asks for {_words(what)}" for one, what in waiting[:4]),
        evidence=f"nvidia-smi -q -x, {named([gpu])}: {said}",
        remedy=Remedy(repair, how.format(reset=typed("nvidia-smi", "--gpu-reset", "-i", address(gpu)))),
        entities=about(one for one, _ in waiting),
    )


@check(
    "health.readable",
    Severity.ERROR,
    title="nvidia-smi reads every field of every GPU",
    reads="ERR! and Unknown Error in nvidia-smi -q -x",
    remedy=Remedy(RepairAction.RESET_GPU, "stop all that runs on it, then nvidia-smi --gpu-reset -i its address"),
    needs=SMI,
)
def readable(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU answers some of nvidia-smi's questions with an error: a sensor is broken, or the GPU hangs."""
    smi = host.driver.smi
    if smi is None or not smi.gpus or not smi.answered:
        return UNLISTED
    odd = sorted((g for g in smi.gpus if g.fault == "error"), key=lambda gpu: -len(_topics(gpu)))
    if not odd:
        return None
    worst = odd[0]
    hangs = len(_topics(worst)) > 1 or worst.uuid is None
    reset = typed("nvidia-smi", "--gpu-reset", "-i", address(worst))
    return Finding(
        f"nvidia-smi cannot read {listing(_topics(worst), 3)} of {named(odd)}",
        evidence=f"nvidia-smi -q -x, {named([worst])}: {listing(worst.fault_fields, 3)}",
        remedy=Remedy(RepairAction.RESET_GPU, f"{XID}; stop all that runs on it, then {reset}; reboot if it stays so"),
        # One sensor alone may be broken on a GPU that computes as it should.
        severity=None if hangs else Severity.WARNING,
        entities=about(odd),
    )


def _asks_for(gpu: SmiGpu) -> str | None:
    return gpu.recovery or ("Reset" if gpu.fault == "reset-required" else None)


def _words(action: str) -> str:
    return {"Reset": "a reset", "Reboot": "a reboot of the node"}.get(action, action)


def _topics(gpu: SmiGpu) -> tuple[str, ...]:
    """ "temperature", "power": what it cannot read; a sensor may have several fields."""
    groups = (field.partition(":")[0].partition("/")[0] for field in gpu.fault_fields)
    return tuple(dict.fromkeys("power" if "power_readings" in group else group for group in groups))
