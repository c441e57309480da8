"""MIG: each GPU partitioned as the spec says, now and at every boot, and never while a program uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from gpunode import resources
from gpunode.advice import typed
from gpunode.catalog.gpus import GpuModel
from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.errors import HostBusy, UnsupportedHost
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.facts import PciDevice
from gpunode.model.gpu_users import gpu_users
from gpunode.model.plan import MIG_STEP, MIG_UNIT, ForUndo, Kept, Step
from gpunode.model.smi import SmiGpu
from gpunode.model.spec import MigLayout, layout_named
from gpunode.planner.site import Site
from gpunode.remedy import AGAIN, Remedy, RepairAction, gpunode

LAYOUT = "/etc/gpunode/mig.conf"
SCRIPT = "/etc/gpunode/mig.sh"
UNIT = MIG_UNIT
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
OFF = "off"
# 66: the mode waits for a reset of the GPU; the unit finishes it at the boot that the plan then asks for.
DONE_OR_PENDING = (0, 66)
# Instances are placed by them: NVIDIA's MIG user guide, supported-mig-profiles.html, "Fraction of Memory".
MEMORY_SLICES = 8
_NO_UNIT = f"without systemd nothing applies it at a boot: sh {SCRIPT} {LAYOUT} does"


def mig_outcome(site: Site) -> Step | Kept | None:
    """The layout's files and unit, and the layout applied; None where the spec has no MIG layout.

    Raises UnsupportedHost for a GPU or profile that cannot be partitioned so, HostBusy while a program uses the GPUs.
    """
    if site.spec.mig is None:
        return None
    if not site.gpu_models:  # the layout's file names GPUs by their PCI address
        here = "an image is being built" if site.host.init == "chroot" else "no GPU is here"
        return Kept(
            MIG_STEP, f"the MIG layout is not set up: {here}; setup applies it on the machine itself", beware=True
        )
    lines = _lines(site, site.spec.mig)
    if not lines and not site.host.file(LAYOUT).exists:
        return Kept(MIG_STEP, "no GPU that the MIG layout switches off is capable of MIG")
    text = "".join(f"{address} {profiles}\n" for address, profiles in lines)
    different = [address for address, profiles in lines if not _is_laid_out(_seen(site, address), profiles)]
    files = _files(site, f"# PCI address and MIG instances of each GPU, written by gpunode\n{text}")
    if site.systemd and (masked := _masked(site)):
        return masked
    if not different and not files and not site.systemd:
        return Kept(MIG_STEP, f"the MIG layout matches the spec; {_NO_UNIT}", beware=True)
    if not different and not files and _is_enabled(site):
        return Kept(MIG_STEP, "the MIG layout matches the spec, now and at every boot")
    _refuse_in_use(site, different)
    return Step(
        MIG_STEP,
        _title(site, lines, different),
        _why(site, different),
        _actions(site, files),
        undo=_undo(site),
        replan_after=True,
        for_undo=ForUndo(for_good="mig-layout"),
    )


def _is_enabled(site: Site) -> bool:
    return site.service(UNIT).enabled == "enabled"  # enabled-runtime is gone after a boot


def _masked(site: Site) -> Kept | None:
    """A mask is a link to /dev/null in the unit's place: somebody's own choice, which is not replaced."""
    now = site.service(UNIT)
    if not now.is_masked:
        return None
    return Kept(
        MIG_STEP,
        f"{UNIT} is masked: the MIG layout would be lost at a boot",
        refused=True,
        evidence=f"LoadState {now.load}, UnitFileState {now.enabled}",
        remedy=Remedy(RepairAction.CONFIGURE, typed("systemctl", "unmask", UNIT), ", then run ", AGAIN, " again"),
    )


def reset_reason(site: Site) -> str | None:
    """Why MIG works only after a reboot: a GPU whose mode was changed and that could not be reset."""
    smi = site.host.driver.smi
    gpus = smi.gpus if smi else ()
    waiting = [g.pci_address for g in gpus if g.mig_mode is not None and g.mig_pending not in (None, g.mig_mode)]
    if site.spec.mig is None or not waiting:
        return None
    return f"MIG mode of {', '.join(waiting)} changes with a reset of the GPU"


def _lines(site: Site, layouts: Sequence[MigLayout]) -> list[tuple[str, str]]:
    """(PCI address, "1g.10gb,1g.10gb" or "off") of each GPU that a layout speaks of, in bus order.

    One that is not capable of MIG is off, and is not in it: nvidia-smi refuses to switch it off.
    """
    asked = [(gpu, layout) for gpu in site.host.own_gpus if (layout := _layout_of(site, gpu, layouts)) is not None]
    found = [
        (gpu.address, _profiles(site, gpu, layout))
        for gpu, layout in asked
        if layout.profiles or _is_capable(site, gpu)
    ]
    if not asked:
        here = sorted({f"{site.catalog.gpu_model(g.device).name} ({g.device})" for g in site.host.own_gpus})
        raise UnsupportedHost(
            f"{site.host.hostname}: no GPU here is one that the MIG layout names",
            evidence=f"it has {', '.join(here) or 'no NVIDIA model'}",
            remedy=Remedy(
                RepairAction.NONE,
                "name its PCI device id, its name as ",
                gpunode("catalog gpus", ssh=False),
                " shows it, or all",
            ),
        )
    return found


def _layout_of(site: Site, gpu: PciDevice, layouts: Sequence[MigLayout]) -> MigLayout | None:
    """The layout that names the GPU most closely: its id, then its name, then all (of those that support MIG)."""
    model = site.catalog.gpu_model(gpu.device)
    if named := layout_named(layouts, gpu.device, model.name.lower()):
        return named
    if not _is_capable(site, gpu) and len({g.device for g in site.host.own_gpus}) > 1:
        return None  # "all" in a mixed box means all that can
    return layout_named(layouts, "all")


def _profiles(site: Site, gpu: PciDevice, layout: MigLayout) -> str:
    known, model = site.catalog.mig(gpu.device), site.catalog.gpu_model(gpu.device)
    if not layout.profiles:
        return OFF
    if unknown := _unknown_profiles(site, gpu):
        raise UnsupportedHost(
            f"{site.host.hostname}: {model.name} ({gpu.device}) is capable of MIG, and its profiles are not known",
            evidence=unknown,
            remedy="leave it out of the layout, and partition it manually: nvidia-smi mig -lgip lists its profiles",
        )
    if known is None:
        raise UnsupportedHost(
            f"{site.host.hostname}: {model.name} ({gpu.device}) cannot be partitioned into MIG instances",
            evidence="catalog/mig.yaml lists the GPUs that can: data center GPUs from Ampere on, RTX PRO of Blackwell",
            remedy="leave it out of the layout",
        )
    for name, count in layout.profiles:
        if count > known.profiles.get(name, 0):
            raise _no_such(site, model, name, count, known.profiles)
    _refuse_too_large(site, model, layout, known.profiles)
    return ",".join(name for name, count in layout.profiles for _ in range(count))


def _refuse_too_large(site: Site, model: GpuModel, layout: MigLayout, profiles: Mapping[str, int]) -> None:
    """By slices of both kinds: 3g.40gb takes 3 of 7 of the GPU's processors, and 4 of 8 of its memory."""
    whole = max(profiles, key=_slices)
    for kind, have, of in (
        ("slices", _slices(whole), _slices),
        ("memory slices", MEMORY_SLICES, partial(_memory_slices, whole=whole)),
    ):
        asked = sum(of(name) * count for name, count in layout.profiles)
        if asked > have:
            raise UnsupportedHost(
                f"{site.host.hostname}: {layout} asks for {asked} {kind}, and {model.name} has {have}",
                evidence="the number before g in each profile's name is its slices, and that before gb its memory",
                remedy=Remedy(
                    RepairAction.NONE,
                    "ask for fewer or smaller instances; ",
                    gpunode("catalog mig", ssh=False),
                    " lists them",
                ),
            )


def _is_capable(site: Site, gpu: PciDevice) -> bool:
    """The catalog says so, or the GPU's driver: nvidia-smi shows the mode of no other GPU."""
    seen = _seen(site, gpu.address)
    return site.catalog.mig(gpu.device) is not None or (seen is not None and seen.mig_mode is not None)


def _unknown_profiles(site: Site, gpu: PciDevice) -> str | None:
    """Evidence that a GPU is capable of MIG while the catalog's profiles are not its own; None: they are, or it is not.

    One PCI id may stand for two sizes of memory, and profiles are named by it: "1g.24gb" of 48 GB.
    """
    known, seen = site.catalog.mig(gpu.device), _seen(site, gpu.address)
    if known is None:
        return f"nvidia-smi shows its MIG mode: {seen.mig_mode}" if seen and seen.mig_mode else None
    if not known.profiles:
        return f"catalog/mig.yaml lists no profiles of it ({known.source})"
    memory_gib = (seen.memory_total_bytes or 0) >> 30 if seen else 0
    size_gb = max(map(_memory_gb, known.profiles))
    if memory_gib and not 0.8 < memory_gib / size_gb < 1.2:
        return f"nvidia-smi shows {memory_gib} GiB, and the profiles of catalog/mig.yaml are for {size_gb} GB"
    return None


def _no_such(site: Site, model: GpuModel, name: str, count: int, profiles: object) -> UnsupportedHost:
    offered = ", ".join(f"{most} x {profile}" for profile, most in dict(profiles).items())  # type: ignore[call-overload]
    return UnsupportedHost(
        f"{site.host.hostname}: {model.name} has no room for {count} x {name}",
        evidence=f"it can be partitioned into at most {offered}",
        remedy="choose among those; nvidia-smi mig -lgip takes precedence",
    )


def _slices(profile: str) -> int:
    """ "3g.40gb" -> 3"""
    return int(profile.partition("g.")[0])


def _memory_gb(profile: str) -> int:
    """ "3g.40gb" -> 40"""
    return int(profile.partition("g.")[2].partition("gb")[0])


def _memory_slices(profile: str, whole: str) -> int:
    """ "3g.40gb" of "7g.80gb" -> 4, in eighths: the names round ("1g.18gb" of 141). Fourths of an A30 count twice."""
    return round(MEMORY_SLICES * _memory_gb(profile) / _memory_gb(whole))


def _seen(site: Site, address: str) -> SmiGpu | None:
    smi = site.host.driver.smi
    return next((g for g in (smi.gpus if smi else ()) if g.pci_address == address), None)


def _is_laid_out(gpu: SmiGpu | None, profiles: str) -> bool:
    if gpu is None:
        return False
    if gpu.mig_mode is None and gpu.fault:
        return True  # nothing can be applied to a lost GPU; the unit does it at the boot that brings it back
    if profiles == OFF:
        return gpu.mig_mode != "Enabled"
    return gpu.mig_mode == "Enabled" and Counter(gpu.mig_profiles) == Counter(profiles.split(","))


def _files(site: Site, layout: str) -> list[PutFile]:
    """Those of layout, script and unit that are not as they should be."""
    embedded = " ".join(
        dict.fromkeys(unit for one in kubernetes_distributions() for unit in (*one.units, *one.kubelet_units))
    )
    unit = resources.render("systemd/gpunode-mig.service.j2", script=SCRIPT, layout=LAYOUT, embedded=embedded)
    wanted = (
        (LAYOUT, layout),
        (SCRIPT, resources.script("mig/apply")),
        *([(UNIT_PATH, unit)] if site.systemd else ()),
    )
    return [
        PutFile(path, text, expect_sha256=site.host.file(path).sha256, any_before=True)
        for path, text in wanted
        if site.host.file(path).text != text
    ]


def _actions(site: Site, files: Sequence[PutFile]) -> tuple[Action, ...]:
    now = Run(
        ("sh", SCRIPT, LAYOUT), ok_codes=DONE_OR_PENDING, timeout_s=600, description="apply the MIG layout to the GPUs"
    )
    runs: list[Action] = []
    if site.systemd:
        runs += [Run(("systemctl", "daemon-reload")), Run(("systemctl", "enable", UNIT))]
    # Without a loaded driver (an image, or before the reboot) the unit does it at the boot.
    return (*files, *runs, *([now] if site.host.driver.loaded else []))


def _undo(site: Site) -> tuple[Action, ...]:
    """The files are restored by now; a unit that was not enabled before must be disabled."""
    if not site.systemd or _is_enabled(site):
        return ()
    return (Run(("systemctl", "disable", UNIT), ok_codes=(0, 1)), Run(("systemctl", "daemon-reload")))


def _refuse_in_use(site: Site, different: Sequence[str]) -> None:
    working = gpu_users(site.host)
    if not different or not working:
        return
    raise HostBusy(
        f"{site.host.hostname}: MIG instances cannot change while {', '.join(working[:4])} use the GPUs",
        evidence=f"{', '.join(different)} would be repartitioned; nothing was touched",
        remedy=Remedy(RepairAction.WAIT, "stop them (drain the node) and run ", AGAIN, " again"),
    )


def _title(site: Site, lines: Sequence[tuple[str, str]], different: Sequence[str]) -> str:
    shapes = Counter(_short(profiles) for _, profiles in lines)
    what = "; ".join(f"{shape} on {n} GPU{'s' if n > 1 else ''}" for shape, n in shapes.items()) or "MIG on no GPU"
    return what + (", at every boot" if site.systemd else "") + ("" if different else " (applied already)")


def _short(profiles: str) -> str:
    counts = Counter(profiles.split(","))
    return "MIG off" if profiles == OFF else " + ".join(f"{n} x {name}" for name, n in counts.items())


def _why(site: Site, different: Sequence[str]) -> str:
    models = (
        f"{', '.join(different)} differ from the spec"
        if different
        else "the GPUs match the spec, the boot configuration does not"
    )
    boot = "so a unit applies it before containers start" if site.systemd else f"and {_NO_UNIT}"
    return f"{models}; Hopper and newer lose their MIG mode at a reboot, {boot}"
