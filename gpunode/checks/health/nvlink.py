"""NVLink: are the links of every GPU up, and do they carry what they are given?"""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.advice import listing
from gpunode.catalog.thresholds import threshold
from gpunode.checks import needs
from gpunode.checks.health.seen import SMI, about, known, named
from gpunode.checks.log.seen import own_kernel
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts, SmiGpu
from gpunode.model.gpu_health import LinkErrors
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

RESET = Remedy(
    RepairAction.RESET_GPU,
    "stop all GPU work, then nvidia-smi --gpu-reset without -i, which resets all GPUs and switches; or reboot. When it "
    "comes again, have GPU and baseboard tested",
)
ASKED = "(asked for where there are several GPUs)"


@check(
    "health.nvlink-down",
    Severity.ERROR,
    title="every GPU of an NVLink board has its links up",
    reads="nvidia-smi nvlink -s",
    remedy=RESET,
    needs=SMI,
)
def nvlink_down(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU of an NVLink board has fewer links than its equals, or none: its collectives are slow, or fail.

    GPUs of PCIe cards are bridged or not as somebody chose, and in a virtual machine a GPU may be a partition of its
    own: no verdict there.
    """
    catalog = context.catalog
    boards = {d.address for d in host.gpus if catalog.gpu_model(d.device).fabric is not None}
    links = known(
        host, lambda gpu: gpu.links if gpu.pci_address in boards else None, f"NVLinks of an NVLink board {ASKED}"
    )
    if isinstance(links, NotApplicable):
        return links
    most = {gpu.name: max(seen.active for other, seen in links if other.name == gpu.name) for gpu, _ in links}
    dark = [] if host.virtualization else [gpu for gpu, seen in links if not seen.active]
    fewer = [gpu for gpu, seen in links if seen.active < most[gpu.name]]
    lacking = [gpu for gpu, _ in links if gpu in fewer or gpu in dark]
    if not lacking:
        return None
    first = lacking[0]
    return Finding(
        f"NVLinks of {named(lacking)} are down",
        evidence=f"nvidia-smi nvlink -s, {named([first])}: {first.links.active if first.links else 0} links up"
        + (f", {most[first.name]} on its equals" if first in fewer else "")
        + _inactive(first),
        remedy=RESET,
        entities=about(lacking),
    )


def _inactive(gpu: SmiGpu) -> str:
    down = gpu.links.inactive if gpu.links else ()
    return f"; inactive: {listing(map(str, down), 18)}" if down else ""


@check(
    "health.nvlink-errors",
    Severity.WARNING,
    title="NVLinks carry what they are given",
    reads="nvidia-smi nvlink -e",
    remedy=RESET,
    needs=SMI,
)
def nvlink_errors(host: HostFacts, context: Context) -> CheckOutcome:
    """An NVLink of a GPU repeats, recovers or drops packets in numbers. A few since the last reset are usual."""
    counts = known(
        host, lambda gpu: gpu.links.errors if gpu.links and gpu.links.errors else None, f"counters of NVLinks {ASKED}"
    )
    if isinstance(counts, NotApplicable):
        return counts
    most = threshold("nvlink-errors")
    noisy = [(gpu, over) for gpu, seen in counts if (over := _over(seen, most))]
    if not noisy:
        return None
    gpu, over = noisy[0]
    return Finding(
        f"NVLinks of {named(one for one, _ in noisy)} have errors",
        evidence=f"nvidia-smi nvlink -e, {named([gpu])}: {listing(over, 4)}",
        remedy=RESET,
        entities=about(one for one, _ in noisy),
    )


def _over(errors: Iterable[LinkErrors], most: int) -> list[str]:
    """ "link 3: 2353 replay errors"; CRC is a word of its own."""
    kinds = {"CRC": "CRC", "Replay": "replay", "Recovery": "recovery"}
    return [f"link {one.link}: {one.count} {kinds[one.kind]} errors" for one in errors if one.count > most]


@check(
    "health.nvlink-rxdetect",
    Severity.WARNING,
    title="the driver can tell which NVLinks are connected",
    reads="the kernel log: postRxDetLinkMask, Rx Detect Link mask",
    remedy=RESET,
    needs=(needs.gpu, own_kernel, needs.kernel_log),
)
def rxdetect(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver failed to find out which NVLinks are connected: NCCL falls back to PCIe, or hangs."""
    if host.kernel_state is None and not host.log.links_undetected:
        return NotApplicable("a recording of an older gpunode does not say")
    if not host.log.links_undetected:
        return None
    return Finding(
        "the driver cannot tell which NVLinks are connected",
        evidence=f"kernel log: {host.log.links_undetected} × Rx Detect Link mask or postRxDetLinkMask failed, "
        "since the driver was loaded",
        remedy=RESET,
    )
