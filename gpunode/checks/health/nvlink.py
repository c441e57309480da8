"""NVLink: are the links of every GPU up, do they carry what they are given, and does each GPU reach the others?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpunode.advice import listing
from gpunode.catalog.thresholds import threshold
from gpunode.checks import needs
from gpunode.checks.health.seen import SMI, about, known, named
from gpunode.checks.log.seen import own_kernel
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_health import LinkErrors
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

RESET = Remedy(
    RepairAction.RESET_GPU,
    "stop all GPU work, then nvidia-smi --gpu-reset without -i, which resets all GPUs and switches; or reboot. When it "
    "comes again, have GPU and baseboard tested",
)
PATHS = Remedy(
    RepairAction.CONFIGURE,
    "systemctl status nvidia-fabricmanager shows whether the fabric is there; switch ACS off and boot with iommu=pt "
    "(pci.acs, pci.iommu-mode); then reboot",
)
# What nvidia-smi says in its legend.
BARRED = {
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
}
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
    boards = _on_boards(host, context)
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


def _on_boards(host: HostFacts, context: Context) -> set[str]:
    return {d.address for d in host.gpus if context.catalog.gpu_model(d.device).fabric is not None}


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
    "health.p2p",
    Severity.WARNING,
    title="GPUs of an NVLink board read each other's memory",
    reads="nvidia-smi topo -p2p r",
    remedy=PATHS,
    needs=SMI,
)
def p2p(host: HostFacts, context: Context) -> CheckOutcome:
    """Two GPUs of an NVLink board whose links are up cannot read each other's memory: NCCL copies through the host.

    Cards on PCIe reach each other or not as they were built and bridged, and a GPU in MIG mode reaches none.
    """
    boards = _on_boards(host, context)
    joined = known(
        host,
        lambda gpu: gpu.peers or None if gpu.pci_address in boards and gpu.links and gpu.links.active else None,
        f"peers {ASKED}, with NVLinks of a board that are up,",
    )
    if isinstance(joined, NotApplicable):
        return joined
    whole = {gpu.index: gpu for gpu, _ in joined if gpu.mig_mode != "Enabled"}
    pairs = [(gpu, whole[n], word) for gpu in whole.values() for n, word in enumerate(gpu.peers) if n in whole]
    pairs = [pair for pair in pairs if pair[0] is not pair[1]]
    if not any(word == "OK" or word in BARRED for _, _, word in pairs):
        return NotApplicable("nvidia-smi does not say of two GPUs whether they reach each other")
    barred = [(gpu, other, word) for gpu, other, word in pairs if word in BARRED]
    if not barred:
        return None
    gpu, other, word = barred[0]
    often = Counter(one.index for pair in barred for one in pair[:2])
    apart = [whole[index] for index, count in often.items() if count == max(often.values())]
    return Finding(
        f"{named(apart)} and other GPUs cannot read each other's memory",
        evidence=f"nvidia-smi topo -p2p r, {named([gpu])} to {named([other])}: {word} ({BARRED[word]})",
        remedy=PATHS,
        entities=about(apart),
    )


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
