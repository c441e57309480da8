"""The GPU as a board: its firmware and InfoROM, its link, and whether it may be used."""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.catalog.thresholds import threshold
from gpunode.checks.health.seen import READS, SMI, UNLISTED, about, address, flagged, known, named, quoted
from gpunode.checks.pci import in_lines
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

RESEAT = Remedy(
    RepairAction.REPLACE, "drain the node and reseat the GPU, its riser and cables; replace them when it happens again"
)
VENDOR = Remedy(
    RepairAction.SUPPORT, "ask the server's maker for its firmware bundle, and bring all GPUs to one version"
)
INFOROM_CORRUPT = 14
MEBIBYTE = 1 << 20


@check(
    "health.inforom",
    Severity.WARNING,
    title="the InfoROM of every GPU is intact",
    reads="exit code 14 of nvidia-smi -q -x, and its warning",
    remedy=Remedy(RepairAction.SUPPORT, "the GPU's maker can write it anew, or replaces the GPU"),
    needs=SMI,
)
def inforom(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's InfoROM is corrupted: it computes, and its records of faulty memory may be lost."""
    smi = host.driver.smi
    if smi is None or not smi.answered:
        return UNLISTED
    if smi.code != INFOROM_CORRUPT:
        return None
    return Finding(
        "the InfoROM of a GPU is corrupted",
        evidence=f"nvidia-smi -q -x, exit {smi.code}: {smi.message or 'no message'}",
        remedy=Remedy(
            RepairAction.SUPPORT, "reboot once; if it stays so, the GPU's maker writes it anew or replaces it"
        ),
        entities=pci(*in_lines(host, (smi.message,))),
    )


@check(
    "health.vbios-uniform",
    Severity.WARNING,
    title="GPUs of one board have one VBIOS version",
    reads=READS.format("vbios_version and board_part_number"),
    remedy=VENDOR,
    needs=SMI,
)
def vbios_uniform(host: HostFacts, context: Context) -> CheckOutcome:
    """GPUs of the same part number have different VBIOS versions, as after one was replaced.

    Boards of different makers have different ones by right; so only a part number that is known is compared.
    """
    boards = known(host, lambda gpu: gpu.health.board.part and gpu.health.board.vbios, "board part number and VBIOS")
    if isinstance(boards, NotApplicable):
        return boards
    versions: dict[str, dict[str, SmiGpu]] = {}
    for gpu, version in boards:
        versions.setdefault(gpu.health.board.part or "", {}).setdefault(version, gpu)
    part, mixed = next(((part, seen) for part, seen in versions.items() if len(seen) > 1), ("", {}))
    if not mixed:
        return None
    return Finding(
        "GPUs of the same board have different VBIOS versions",
        evidence=f"nvidia-smi -q -x, vbios_version: {listing(f'{v} on {named([gpu])}' for v, gpu in mixed.items())}",
        remedy=VENDOR,
        entities=about(gpu for gpu, _ in boards if gpu.health.board.part == part),
    )


@check(
    "health.pcie-replay",
    Severity.WARNING,
    title="packets on the GPUs' PCIe links need not be sent again",
    reads=READS.format("replay_counter and replay_rollover_counter"),
    remedy=RESEAT,
    needs=SMI,
)
def pcie_replay(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's PCIe link has lost packets in numbers, and sent them again. A few since the last reset are usual."""
    noisy = flagged(host, _replays, "counter of PCIe replays")
    if not isinstance(noisy, list):
        return noisy
    link = noisy[0].health.link
    return Finding(
        f"the PCIe link of {named(noisy)} repeats packets",
        evidence=quoted(noisy[0], f"replay_counter {link.replays}, replay_rollover_counter {link.rollovers or 0}"),
        remedy=RESEAT,
        entities=about(noisy),
    )


@check(
    "pci.link-speed",
    Severity.WARNING,
    title="a GPU at work has its PCIe link at full speed",
    reads=READS.format("pcie_gen, performance_state and gpu_util"),
    remedy=RESEAT,
    needs=SMI,
)
def link_speed(host: HostFacts, context: Context) -> CheckOutcome:
    """The PCIe link of a GPU that is at work is slower than GPU and slot allow.

    A link is slower while nothing needs it: no verdict then.
    """
    slow = flagged(host, _is_slow, "PCIe generation while it is at work (P0)")
    if not isinstance(slow, list):
        return slow
    link = slow[0].health.link
    return Finding(
        f"the PCIe link of {named(slow)} is slower than GPU and slot allow",
        evidence=quoted(slow[0], f"current_link_gen {link.generation}, max_link_gen {link.generation_max}, P0"),
        remedy=Remedy(
            RepairAction.REPLACE, f"look at the link speed of the slot in the firmware's setup; {RESEAT.text}"
        ),
        entities=about(slow),
    )


@check(
    "health.compute-mode",
    Severity.ERROR,
    title="programs may compute on every GPU",
    reads=READS.format("compute_mode"),
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-smi -i its address -c DEFAULT"),
    needs=SMI,
)
def compute_mode(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is in compute mode Prohibited: no program can use it. An exclusive mode is a choice, as for MPS."""
    closed = flagged(
        host,
        lambda gpu: None if (mode := gpu.health.use.compute_mode) is None else mode == "Prohibited",
        "compute mode",
    )
    if not isinstance(closed, list):
        return closed
    return Finding(
        f"no program may compute on {named(closed)}",
        evidence=quoted(closed[0], "compute_mode: Prohibited"),
        remedy=Remedy(RepairAction.CONFIGURE, typed("nvidia-smi", "-i", address(closed[0]), "-c", "DEFAULT")),
        entities=about(closed),
    )


@check(
    "health.leftover-memory",
    Severity.WARNING,
    title="no GPU holds memory of programs that are gone",
    reads=READS.format("fb_memory_usage and processes"),
    remedy=Remedy(
        RepairAction.RESET_GPU, "end what still has the GPU open (fuser -v /dev/nvidia*), or nvidia-smi --gpu-reset"
    ),
    needs=SMI,
)
def leftover_memory(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's memory is taken though no program uses the GPU.

    MIG instances and vGPUs hold memory of their own, and what the driver reserves is no use.
    """
    held = flagged(host, _holds_memory, "use of its memory next to its processes")
    if not isinstance(held, list):
        return held
    used = (held[0].health.use.memory_used_bytes or 0) // MEBIBYTE
    reset = typed("nvidia-smi", "--gpu-reset", "-i", address(held[0]))
    return Finding(
        f"the memory of {named(held)} is taken, and no program uses it",
        evidence=quoted(held[0], f"{used} MiB used, no processes"),
        remedy=Remedy(RepairAction.RESET_GPU, f"fuser -v /dev/nvidia* shows what has it open; end that, or {reset}"),
        entities=about(held),
    )


def _replays(gpu: SmiGpu) -> bool | None:
    link = gpu.health.link
    if link.replays is None:
        return None
    return link.replays > threshold("pcie-replays") or bool(link.rollovers)


def _is_slow(gpu: SmiGpu) -> bool | None:
    link, busy = gpu.health.link, gpu.health.use.busy_percent
    if link.generation is None or link.generation_max is None or busy is None:
        return None
    if gpu.health.clocks.state != "P0" or busy < threshold("link-in-use"):
        return False if link.generation >= link.generation_max else None
    return link.generation < link.generation_max


def _holds_memory(gpu: SmiGpu) -> bool | None:
    use = gpu.health.use
    apart = gpu.mig_mode != "Enabled" and use.virtualization in (None, "None", "Pass-Through")
    if use.memory_used_bytes is None or use.processes is None or not apart:
        return None
    return use.processes == 0 and use.memory_used_bytes > threshold("memory-without-process") * MEBIBYTE
