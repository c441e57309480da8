"""What the driver itself says of a GPU's health, GPU by GPU: lost, waiting for a reset or reboot, unreadable."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.advice import listing, typed
from gpunode.checks.health.seen import SMI, UNLISTED, about, address, named, quoted
from gpunode.checks.pci import fallen
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

BACK = (
    "power the node off and on (a warm reboot is often not enough); when it happens again, check power cables and "
    "riser, then replace the GPU"
)
RESET = Remedy(RepairAction.RESET_GPU, "stop all that runs on it, then nvidia-smi --gpu-reset -i its address")
SENSORS = ("temperature", "power")
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
    title="the driver asks for no recovery of a GPU",
    reads="gpu_recovery_action in nvidia-smi -q -x (575 and newer)",
    remedy=RESET,
    needs=SMI,
)
def recovery_action(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has met an error, and the driver names what it recovers by: a reset, a reboot, the end of some programs."""
    smi = host.driver.smi
    if smi is None or not smi.gpus:
        return UNLISTED
    waiting = [(gpu, action) for gpu in smi.gpus if gpu.fault != "lost" and (action := gpu.asks_for)]
    if not waiting:
        if not smi.answered:
            return UNLISTED
        named_by_none = all(gpu.recovery is None for gpu in smi.gpus)
        return NotApplicable("nvidia-smi names no recovery (575 and newer do)") if named_by_none else None
    heaviest = [*RECOVERIES, *(action for _, action in waiting)].index
    gpu, action = min(waiting, key=lambda one: heaviest(one[1]))
    repair, how = RECOVERIES.get(action, OTHER)
    return Finding(
        "; ".join(f"{named([one])} asks for {_words(what)}" for one, what in waiting[:4]),
        evidence=quoted(gpu, f"gpu_recovery_action: {action}"),
        remedy=Remedy(repair, how.format(reset=_reset_of(gpu))),
        entities=about(one for one, _ in waiting),
    )


@check(
    "health.reset-required",
    Severity.ERROR,
    title="no GPU is held up until it is reset",
    reads="gpu_reset_status (535 and newer, before 590) and GPU requires reset in nvidia-smi -q -x",
    remedy=RESET,
    needs=SMI,
)
def reset_required(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has met an error, and does not work on until it was reset, or not as it should."""
    smi = host.driver.smi
    if smi is None or not smi.gpus:
        return UNLISTED
    asking = [gpu for gpu in smi.gpus if gpu.fault != "lost" and gpu.requires_reset]
    waiting = [gpu for gpu in asking if gpu.asks_for is None]
    if asking and not waiting:
        return NotApplicable("the driver itself names what it recovers by (health.recovery-action)")
    if not waiting:
        return None if smi.answered else UNLISTED
    advised = [gpu for gpu in waiting if _is_advice(gpu)]
    worst = next((gpu for gpu in waiting if gpu not in advised), waiting[0])
    said = worst.fault_fields[0] if worst.fault == "reset-required" else f"gpu_reset_status/{worst.reset_flags[0]}: Yes"
    repair, how = RECOVERIES["Drain and Reset" if worst in advised else "Reset"]
    return Finding(
        f"{named(waiting)} should be drained and reset" if worst in advised else f"{named(waiting)} requires a reset",
        evidence=quoted(worst, said),
        remedy=Remedy(repair, how.format(reset=_reset_of(worst))),
        entities=about(waiting),
    )


@check(
    "health.power-readable",
    Severity.ERROR,
    title="the power and temperature sensors of every GPU answer",
    reads="ERR! and Unknown Error in temperature and the power readings of nvidia-smi -q -x",
    remedy=RESET,
    needs=SMI,
)
def power_readable(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's power or temperature cannot be read: nothing holds it below its limits, and most often it hangs."""
    return _unreadable(host, of_sensors=True)


@check(
    "health.readable",
    Severity.ERROR,
    title="nvidia-smi reads every field of every GPU",
    reads="ERR! and Unknown Error in nvidia-smi -q -x; those of sensors are health.power-readable's",
    remedy=RESET,
    needs=SMI,
)
def readable(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU answers some of nvidia-smi's questions with an error: a part of it is broken, or the GPU hangs."""
    return _unreadable(host, of_sensors=False)


def _unreadable(host: HostFacts, *, of_sensors: bool) -> CheckOutcome:
    smi = host.driver.smi
    if smi is None or not smi.gpus or not smi.answered:
        return UNLISTED
    odd = [(gpu, fields) for gpu in smi.gpus if gpu.fault == "error" and (fields := _fields(gpu, of_sensors))]
    if not odd:
        return None
    worst, fields = max(odd, key=lambda one: len(_topics(one[0].fault_fields)))
    # One part alone may be broken on a GPU that computes as it should; without sensors nothing guards it.
    one_part = len(_topics(worst.fault_fields)) == 1 and worst.uuid is not None and not of_sensors
    return Finding(
        f"nvidia-smi cannot read {listing(_topics(fields), 3)} of {named(gpu for gpu, _ in odd)}",
        evidence=quoted(worst, listing(fields, 3)),
        remedy=Remedy(
            RepairAction.RESET_GPU, f"{XID}; stop all that runs on it, then {_reset_of(worst)}; reboot if it stays so"
        ),
        severity=Severity.WARNING if one_part else None,
        entities=about(gpu for gpu, _ in odd),
    )


def _reset_of(gpu: SmiGpu) -> str:
    return typed("nvidia-smi", "--gpu-reset", "-i", address(gpu))


def _words(action: str) -> str:
    return {"Reset": "a reset", "Reboot": "a reboot of the node"}.get(action, action)


def _is_advice(gpu: SmiGpu) -> bool:
    """It works on, and should be reset when its work has ended."""
    return gpu.fault != "reset-required" and "reset_required" not in gpu.reset_flags


def _fields(gpu: SmiGpu, of_sensors: bool) -> list[str]:
    return [field for field in gpu.fault_fields if (_topic(field) in SENSORS) is of_sensors]


def _topics(fields: Iterable[str]) -> tuple[str, ...]:
    """ "temperature", "power": what it cannot read; a sensor may have several fields."""
    return tuple(dict.fromkeys(map(_topic, fields)))


def _topic(field: str) -> str:
    group = field.partition(":")[0].partition("/")[0]
    return "power" if "power_readings" in group else group
