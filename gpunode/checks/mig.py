"""MIG: is each GPU partitioned as it should be, and will it still be after its next reset?"""

from __future__ import annotations

from collections import Counter

from gpunode.advice import typed
from gpunode.checks.health.seen import READS, SMI, about, address, flagged, known, named, quoted, reset
from gpunode.checks.registry import Context, check
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts
from gpunode.model.operator import owned_by_operator
from gpunode.model.plan import MIG_STEP, MIG_UNIT
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.model.spec import MigLayout, layout_named
from gpunode.remedy import Remedy, RepairAction, setup

PARTITION = Remedy(RepairAction.CONFIGURE, setup("--only", "driver"), " partitions the GPUs, now and at every boot")


@check(
    "mig.mode-pending",
    Severity.ERROR,
    title="the MIG mode of every GPU is the one that it has after a reset",
    reads=READS.format("mig_mode"),
    remedy=Remedy(RepairAction.RESET_GPU, "stop all that runs on it, then nvidia-smi --gpu-reset -i its address"),
    needs=SMI,
)
def mode_pending(host: HostFacts, context: Context) -> CheckOutcome:
    """MIG is switched on or off, and the GPU works as before until its next reset, which ends what it is used as."""
    waiting = flagged(host, lambda gpu: None if gpu.mig_mode is None else _is_waiting(gpu), "MIG mode")
    if not isinstance(waiting, list):
        return waiting
    gpu = waiting[0]
    return Finding(
        f"the MIG mode of {named(waiting)} changes with the next reset",
        evidence=quoted(gpu, f"current_mig {gpu.mig_mode}, pending_mig {gpu.mig_pending}"),
        remedy=Remedy(RepairAction.RESET_GPU, reset(gpu)),
        entities=about(waiting),
    )


@check(
    "mig.layout-vs-wanted",
    Severity.ERROR,
    title="GPUs are partitioned as the spec says, also after a boot, and one in MIG mode has instances",
    reads=READS.format("mig_devices") + f" and nvidia-smi -L, against the spec's mig; {MIG_UNIT} of systemd",
    remedy=PARTITION,
    needs=SMI,
)
def layout_vs_wanted(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is not partitioned as the spec says, or is in MIG mode without an instance: programs see no GPU then. A
    warning where it is, and gpunode's unit is not there to make the instances again at the next boot."""
    modes = known(host, lambda gpu: gpu.mig_mode, "MIG mode")
    if isinstance(modes, NotApplicable):
        return modes
    wanted = context.spec.mig if context.spec else None
    return _empty(host) if wanted is None else _different(host, context, wanted)


def _empty(host: HostFacts) -> CheckOutcome:
    """Nobody said how they are to be partitioned: all that is wrong for sure is a GPU that nothing can use."""
    empty = flagged(host, _is_empty, "MIG instances")
    if not isinstance(empty, list):
        return empty
    off = typed("nvidia-smi", "-i", address(empty[0]), "-mig", "0")
    return Finding(
        f"{named(empty)} is in MIG mode and has no instance: programs see no GPU there",
        evidence=quoted(empty[0], "current_mig Enabled, mig_devices None"),
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "create instances (nvidia-smi mig -cgi PROFILE -C; nvidia-smi mig -lgip lists the profiles), or "
            f"{off} switches MIG off",
        ),
        severity=Severity.WARNING,
        entities=about(empty),
    )


def _different(host: HostFacts, context: Context, wanted: tuple[MigLayout, ...]) -> CheckOutcome:
    wrong = misfits(host, context, wanted)
    if isinstance(wrong, NotApplicable):
        return wrong
    if not wrong:
        return _lost_at_boot(host, wanted)
    gpu, layout = wrong[0]
    return Finding(
        f"{named(one for one, _ in wrong)} is not partitioned as the spec says",
        evidence=f"nvidia-smi -L, {named([gpu])}: {shape(gpu)}; the spec: {layout}",
        remedy=PARTITION,
        entities=about(one for one, _ in wrong),
        steps=(MIG_STEP,),
    )


def _lost_at_boot(host: HostFacts, wanted: tuple[MigLayout, ...]) -> Finding | None:
    """No GPU keeps instances over a boot (NVIDIA's MIG user guide); one without MIG stays so."""
    service = host.services.get(MIG_UNIT)
    if host.init != "systemd" or service is None or not any(layout.profiles for layout in wanted):
        return None
    if service.enabled == "enabled" or owned_by_operator(host):  # the GPU Operator's MIG manager makes them
        return None
    unmask = Remedy(RepairAction.CONFIGURE, f"systemctl unmask {MIG_UNIT}, then ", setup("--only", "driver"))
    return Finding(
        "GPUs are partitioned as the spec says, and gpunode's unit does not do it at the next boot",
        evidence=f"{MIG_UNIT}: LoadState {service.load}, UnitFileState {service.enabled or 'none'}",
        remedy=unmask if service.is_masked else PARTITION,
        severity=Severity.WARNING,
        entities=unit(MIG_UNIT),
        steps=() if service.is_masked else (MIG_STEP,),
    )


def misfits(
    host: HostFacts, context: Context, wanted: tuple[MigLayout, ...]
) -> list[tuple[SmiGpu, MigLayout]] | NotApplicable:
    """The GPUs that are not partitioned as the layout that names them says; why that is not known."""
    layouts = {device.address: _layout(context, device.device, wanted) for device in host.gpus}
    named_ones = known(host, lambda gpu: layouts.get(gpu.pci_address) and gpu.mig_mode, "MIG mode of a wanted layout")
    if isinstance(named_ones, NotApplicable):
        return named_ones
    pairs = [(gpu, layout) for gpu, _ in named_ones if (layout := layouts[gpu.pci_address])]
    verdicts = [(gpu, layout, _fits(gpu, layout)) for gpu, layout in pairs]
    wrong = [(gpu, layout) for gpu, layout, fits in verdicts if fits is False]
    unknown = [gpu for gpu, _, fits in verdicts if fits is None]
    if unknown and not wrong:
        return NotApplicable(f"nvidia-smi -L does not name the instances of {named(unknown)}")
    return wrong


def shape(gpu: SmiGpu) -> str:
    """How it is partitioned now: "1g.10gb, 1g.10gb", "no instance", "MIG off"."""
    return ", ".join(gpu.mig_profiles) or ("no instance" if gpu.mig_mode == "Enabled" else "MIG off")


def _layout(context: Context, device: str, wanted: tuple[MigLayout, ...]) -> MigLayout | None:
    return layout_named(wanted, device, context.catalog.gpu_model(device).name.lower(), "all")


def _is_waiting(gpu: SmiGpu) -> bool:
    return gpu.mig_pending not in (None, gpu.mig_mode)


def _is_empty(gpu: SmiGpu) -> bool | None:
    if gpu.mig_mode is None:
        return None
    if gpu.mig_mode != "Enabled":
        return False
    return None if gpu.health.use.mig_devices is None else gpu.health.use.mig_devices == 0


def _fits(gpu: SmiGpu, layout: MigLayout) -> bool | None:
    """None: nvidia-smi shows instances and does not name them."""
    if gpu.mig_mode != "Enabled" or not layout.profiles:
        return gpu.mig_mode != "Enabled" and not layout.profiles
    if len(gpu.mig_profiles) < (gpu.health.use.mig_devices or 0):
        return None
    return Counter(gpu.mig_profiles) == Counter(dict(layout.profiles))
