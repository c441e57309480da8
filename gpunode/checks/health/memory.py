"""A GPU's memory: errors that ECC could not correct, and what waits for a reset or for a new GPU because of them.

Errors that were corrected are no fault, nor is a row that was remapped: that is the repair (NVIDIA, GPU Memory Error
Management). Of the counters of a GPU's whole life only NVIDIA's own flags count: what they counted is repaired.
"""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.catalog.thresholds import threshold
from gpunode.checks.health.seen import READS, SMI, about, address, flagged, known, named, quoted, reset, unlike
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_health import MemoryErrors
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

RESET = Remedy(RepairAction.RESET_GPU, "stop all that runs on it, then nvidia-smi --gpu-reset -i its address")
REPLACE = Remedy(
    RepairAction.REPLACE, "drain the node and have the GPU replaced; NVIDIA's Field Diagnostic decides on the RMA"
)


@check(
    "health.ecc-mode",
    Severity.WARNING,
    title="ECC is set alike on all GPUs of a model, and waits for no reset",
    reads=READS.format("ecc_mode"),
    remedy=Remedy(
        RepairAction.RESET_GPU,
        "nvidia-smi -e 1 switches ECC on, and nvidia-smi --gpu-reset -i its address puts it into force",
    ),
    needs=SMI,
)
def ecc_mode(host: HostFacts, context: Context) -> CheckOutcome:
    """ECC changes with the GPU's next reset, or one GPU has it otherwise than its equals.

    ECC that is off on all GPUs of a model was switched off by somebody, or is how the model is sold.
    """
    modes = known(host, lambda gpu: gpu.ecc_mode, "ECC mode")
    if isinstance(modes, NotApplicable):
        return modes
    waiting = [gpu for gpu, mode in modes if gpu.health.ecc_pending not in (None, mode)]
    if waiting:
        gpu = waiting[0]
        return Finding(
            f"ECC of {named(waiting)} changes with the next reset",
            evidence=quoted(gpu, f"current_ecc {gpu.ecc_mode}, pending_ecc {gpu.health.ecc_pending}"),
            remedy=Remedy(RepairAction.RESET_GPU, reset(gpu)),
            entities=about(waiting),
        )
    odd = unlike(modes)
    if not odd:
        return None
    off = next((gpu for gpu, mode in modes if mode == "Disabled" and gpu.name == odd[0].name), odd[0])
    switch = typed("nvidia-smi", "-i", address(off), "-e", "1")
    return Finding(
        f"ECC is not the same on all GPUs: {named(odd)} {'differs' if len(odd) == 1 else 'differ'}",
        evidence=quoted(odd[0], f"current_ecc {odd[0].ecc_mode}"),
        remedy=Remedy(RepairAction.RESET_GPU, f"{switch} switches it on; {reset(off)}"),
        entities=about(odd),
    )


@check(
    "health.ecc-volatile-unc",
    Severity.ERROR,
    title="no memory error since the last reset that ECC could not correct",
    reads=READS.format("ecc_errors/volatile"),
    remedy=RESET,
    needs=SMI,
)
def ecc_volatile(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's memory lost data since its last reset: the program that used it has failed."""
    hit = flagged(host, lambda gpu: _is_hit(gpu.health.errors), "ECC errors")
    if not isinstance(hit, list):
        return hit
    untold = [gpu for gpu in hit if gpu.health.errors.sram_uncorrectable or not gpu.health.repairs.pages_pending]
    if not untold:
        return NotApplicable("its repair waits for a reset (health.retired-pages)")
    gpu = untold[0]
    counts = gpu.health.errors.dram_uncorrectable or 0, gpu.health.errors.sram_uncorrectable or 0
    return Finding(
        f"the memory of {named(untold)} had errors that ECC could not correct, since the last reset",
        evidence=quoted(gpu, f"volatile, uncorrectable: {counts[0]} in DRAM, {counts[1]} in SRAM"),
        remedy=Remedy(RepairAction.RESET_GPU, f"its results are lost; {reset(gpu)}"),
        entities=about(untold),
    )


@check(
    "health.ecc-aggregate-unc",
    Severity.ERROR,
    title="no GPU has had more SRAM errors than NVIDIA allows",
    reads=READS.format("ecc_errors/aggregate/sram_threshold_exceeded"),
    remedy=REPLACE,
    needs=SMI,
)
def ecc_aggregate(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU had so many SRAM errors that ECC could not correct that NVIDIA replaces it.

    The flag, not the counts: errors of a GPU's whole life that stay below it are repaired or were single ones.
    """
    worn = flagged(host, lambda gpu: gpu.health.errors.sram_threshold_exceeded, "threshold of SRAM errors")
    if not isinstance(worn, list):
        return worn
    return Finding(
        f"{named(worn)} had more SRAM errors than NVIDIA's limit for replacement",
        evidence=quoted(worn[0], "sram_threshold_exceeded: Yes"),
        remedy=REPLACE,
        entities=about(worn),
    )


@check(
    "health.ecc-corrected",
    Severity.WARNING,
    title="errors that ECC corrected are below what is usual",
    reads=READS.format("ecc_errors/volatile"),
    remedy=Remedy(
        RepairAction.SUPPORT, "watch whether they grow; journalctl -k -b | grep Xid shows what the driver says"
    ),
    needs=SMI,
)
def ecc_corrected(host: HostFacts, context: Context) -> CheckOutcome:
    """ECC corrected errors in such numbers that the memory may be failing.

    Corrected errors are no fault: nothing was lost. The limits are those at which a large cloud takes a node out.
    """
    many = flagged(host, lambda gpu: _many_corrected(gpu.health.errors), "corrected ECC errors")
    if not isinstance(many, list):
        return many
    errors = many[0].health.errors
    return Finding(
        f"ECC corrected an unusual number of errors on {named(many)}",
        evidence=quoted(
            many[0], f"volatile, corrected: {errors.dram_corrected} in DRAM, {errors.sram_corrected} in SRAM"
        ),
        remedy=Remedy(
            RepairAction.SUPPORT, "watch whether they grow; Xid 92 and 94 in journalctl -k -b go with a failing memory"
        ),
        entities=about(many),
    )


@check(
    "health.row-remap-pending",
    Severity.ERROR,
    title="no row of memory waits to be remapped",
    reads=READS.format("remapped_rows/remapped_row_pending"),
    remedy=RESET,
    needs=SMI,
)
def row_remap_pending(host: HostFacts, context: Context) -> CheckOutcome:
    """A faulty row of a GPU's memory is replaced by a spare one, and only at the next reset."""
    waiting = flagged(host, lambda gpu: gpu.health.repairs.rows_pending, "row remapping")
    if not isinstance(waiting, list):
        return waiting
    return Finding(
        f"{named(waiting)} has a faulty row of memory, and its remapping waits for a reset",
        evidence=quoted(waiting[0], "remapped_row_pending: Yes"),
        remedy=Remedy(RepairAction.RESET_GPU, reset(waiting[0])),
        entities=about(waiting),
    )


@check(
    "health.row-remap-failure",
    Severity.ERROR,
    title="every faulty row of memory was remapped",
    reads=READS.format("remapped_rows/remapped_row_failure"),
    remedy=REPLACE,
    needs=SMI,
)
def row_remap_failure(host: HostFacts, context: Context) -> CheckOutcome:
    """A faulty row of a GPU's memory could not be replaced by a spare one: NVIDIA's condition for an RMA."""
    failed = flagged(host, lambda gpu: gpu.health.repairs.rows_failed, "row remapping")
    if not isinstance(failed, list):
        return failed
    return Finding(
        f"{named(failed)} has a faulty row of memory that cannot be remapped",
        evidence=quoted(failed[0], "remapped_row_failure: Yes"),
        remedy=REPLACE,
        entities=about(failed),
    )


@check(
    "health.row-remap-count",
    Severity.WARNING,
    title="every GPU has spare rows of memory left",
    reads=READS.format("remapped_rows and its histogram"),
    remedy=REPLACE,
    needs=SMI,
)
def row_remap_count(host: HostFacts, context: Context) -> CheckOutcome:
    """A bank of a GPU's memory has few or no spare rows left, or half of all remappings are spent."""
    spent = flagged(host, lambda gpu: bool(_spent(gpu)) if _counts_rows(gpu) else None, "count of remapped rows")
    if not isinstance(spent, list):
        return spent
    return Finding(
        f"{named(spent)} is running out of spare rows of memory",
        evidence=quoted(spent[0], listing(_spent(spent[0]))),
        remedy=Remedy(RepairAction.REPLACE, "plan its replacement: when a remapping fails, NVIDIA replaces the GPU"),
        entities=about(spent),
    )


@check(
    "health.retired-pages",
    Severity.ERROR,
    title="no page of memory waits to be retired, and few were",
    reads=READS.format("retired_pages"),
    remedy=RESET,
    needs=SMI,
)
def retired_pages(host: HostFacts, context: Context) -> CheckOutcome:
    """A faulty page of an older GPU's memory waits to be taken out of use, or too many were (Volta and older).

    After an error of two bits no program can start on the GPU until its page is out of use.
    """
    waiting = flagged(host, lambda gpu: gpu.health.repairs.pages_pending, "retired pages")
    if isinstance(waiting, list):
        return Finding(
            f"{named(waiting)} has a faulty page of memory that is taken out of use only at a reset",
            evidence=quoted(waiting[0], "retired_pages, pending: Yes"),
            remedy=Remedy(RepairAction.RESET_GPU, reset(waiting[0])),
            entities=about(waiting),
        )
    worn = flagged(host, _many_pages, "retired pages")
    if not isinstance(worn, list):
        return worn
    return Finding(
        f"{named(worn)} has retired {_pages(worn[0])} pages of memory",
        evidence=quoted(worn[0], f"retired_pages: {_pages(worn[0])}; the limit is {threshold('pages-retired')}"),
        remedy=REPLACE,
        severity=Severity.WARNING,
        entities=about(worn),
    )


@check(
    "health.repair-flags",
    Severity.ERROR,
    title="no GPU waits for a repair of its own, or is beyond one",
    reads=READS.format("channel_repair_pending, tpc_repair_pending and unrepairable_memory"),
    remedy=RESET,
    needs=SMI,
)
def repair_flags(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has memory that cannot be repaired, or takes a spare channel or processing cluster at its next reset."""
    beyond = flagged(host, lambda gpu: gpu.health.errors.unrepairable, "state of its repairs")
    if isinstance(beyond, list):
        return Finding(
            f"the memory of {named(beyond)} has a fault that cannot be repaired",
            evidence=quoted(beyond[0], "unrepairable_memory: Yes"),
            remedy=REPLACE,
            entities=about(beyond),
        )
    waiting = flagged(host, _repairs_itself, "state of its repairs")
    if not isinstance(waiting, list):
        return waiting if beyond is not None else None
    what = "channel_repair_pending" if waiting[0].health.errors.channel_repair_pending else "tpc_repair_pending"
    return Finding(
        f"{named(waiting)} repairs itself at its next reset",
        evidence=quoted(waiting[0], f"{what}: Yes"),
        remedy=Remedy(RepairAction.RESET_GPU, reset(waiting[0])),
        severity=Severity.WARNING,
        entities=about(waiting),
    )


def _is_hit(errors: MemoryErrors) -> bool | None:
    counts = [n for n in (errors.sram_uncorrectable, errors.dram_uncorrectable) if n is not None]
    return any(counts) if counts else None


def _many_corrected(errors: MemoryErrors) -> bool | None:
    counts = ((errors.dram_corrected, "dram-corrected"), (errors.sram_corrected, "sram-corrected"))
    over = [count > threshold(limit) for count, limit in counts if count is not None]
    return any(over) if over else None


def _counts_rows(gpu: SmiGpu) -> bool:
    return gpu.health.repairs.rows_uncorrectable is not None or gpu.health.repairs.banks_none is not None


def _spent(gpu: SmiGpu) -> list[str]:
    """What shows that spare rows run out: "row_remapper_histogram_none: 1 bank(s)"."""
    repairs = gpu.health.repairs
    many = (repairs.rows_uncorrectable or 0) > threshold("rows-remapped")
    banks = [("none", repairs.banks_none), ("low", repairs.banks_low)]
    return [
        *(f"row_remapper_histogram_{name}: {count} bank(s)" for name, count in banks if count),
        *([f"remapped_row_unc: {repairs.rows_uncorrectable}"] if many else []),
    ]


def _pages(gpu: SmiGpu) -> int:
    return (gpu.health.repairs.pages_single_bit or 0) + (gpu.health.repairs.pages_double_bit or 0)


def _many_pages(gpu: SmiGpu) -> bool | None:
    counted = gpu.health.repairs.pages_single_bit is not None or gpu.health.repairs.pages_double_bit is not None
    return _pages(gpu) >= threshold("pages-retired") if counted else None


def _repairs_itself(gpu: SmiGpu) -> bool | None:
    flags = [
        f for f in (gpu.health.errors.channel_repair_pending, gpu.health.errors.tpc_repair_pending) if f is not None
    ]
    return any(flags) if flags else None
