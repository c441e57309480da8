"""CUDA's Multi-Process Service: do its daemon and the GPUs' compute mode go together?"""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.health.seen import SMI, about, address, known, named, quoted
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts, MpsProcess
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

EXCLUSIVE = "Exclusive_Process"
QUIT = "echo quit | nvidia-cuda-mps-control"


@check(
    "svc.mps",
    Severity.WARNING,
    title="MPS runs where a GPU is set up for it, and nowhere else",
    reads="processes called nvidia-cuda-mps; compute_mode in nvidia-smi -q -x",
    remedy=Remedy(
        RepairAction.CONFIGURE,
        f"nvidia-cuda-mps-control -d starts MPS, {QUIT} ends it; nvidia-smi -c sets the compute mode",
    ),
    needs=(*SMI, needs.read("mps")),
)
def mps(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU takes one program alone and no MPS shares it among several, or MPS was left running and no GPU is its own.

    On a GPU in mode Default a program that does not know of MPS runs next to it, and both wait for each other. Mode
    Prohibited is health.compute-mode's.
    """
    modes = known(host, lambda gpu: gpu.health.use.compute_mode, "compute mode")
    if isinstance(modes, NotApplicable):
        return modes
    if not host.root:
        return NotApplicable("only root is sure to see every process")
    daemons = host.driver.mps
    if daemons is None:
        return NotApplicable("a recording of an older gpunode does not say")
    exclusive = [gpu for gpu, mode in modes if mode == EXCLUSIVE]
    if exclusive and not daemons:
        return _without(exclusive)
    if not daemons or exclusive:
        return None
    open_to_all = [gpu for gpu, mode in modes if mode == "Default"]
    return (
        _stray(open_to_all, daemons) if open_to_all else NotApplicable("no program may compute (health.compute-mode)")
    )


def _without(exclusive: list[SmiGpu]) -> Finding:
    mode = typed("nvidia-smi", "-i", address(exclusive[0]), "-c", "DEFAULT")
    return Finding(
        f"{named(exclusive)} takes one program alone, and no MPS shares it among several",
        evidence=quoted(exclusive[0], f"compute_mode: {EXCLUSIVE}; no process is called nvidia-cuda-mps"),
        remedy=Remedy(RepairAction.CONFIGURE, f"start MPS (nvidia-cuda-mps-control -d), or {mode}"),
        entities=about(exclusive),
    )


def _stray(gpus: list[SmiGpu], daemons: tuple[MpsProcess, ...]) -> Finding:
    mode = typed("nvidia-smi", "-i", address(gpus[0]), "-c", "EXCLUSIVE_PROCESS")
    where = "its pod or container" if all(one.container for one in daemons) else f"{QUIT} as its user"
    return Finding(
        "MPS runs, and no GPU is set up for it",
        evidence=f"{quoted(gpus[0], 'compute_mode: Default')}; nvidia-cuda-mps: {listing(map(_said, daemons), 4)}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"end it where nobody uses it ({where}), or give it the GPU: {mode}",
        ),
        entities=about(gpus),
    )


def _said(one: MpsProcess) -> str:
    owner = "of an unknown user" if one.uid is None else f"of uid {one.uid}"
    return f"process {one.pid} {owner}{', in a container' if one.container else ''}"
