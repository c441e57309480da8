"""The PCI bus: presence of the GPUs, link width, BAR1, runtime PM, and the kernel driver that is bound."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.drv.choices import excluded
from gpunode.checks.gpu_node import not_on_pci, signs_of_gpu_node
from gpunode.checks.log.lines import since_loaded
from gpunode.checks.net.rdma import infiniband
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts, PciDevice
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

SYSFS = "/sys/bus/pci/devices"
OFF_THE_BUS = "ffffffff"
FALLEN = "fallen off the bus"
GPUS_BACK = "cloud: a GPU instance type; VM: pass the GPU through; bare metal: reseat it, Above 4G Decoding on"
NONE_MEANT = "none is meant to be here: --expect-gpus 0"
# Longer than a process's name, which a user chooses.
_OF_GPU = regex(
    r"NVRM: (?:GPU (?:at )?|Xid \()(?:PCI:)?(?P<slot>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?(?:: |\): )"
)


@check(
    "pci.gpu-present",
    Severity.ERROR,
    title="an NVIDIA GPU is on the PCI bus",
    reads=f"{SYSFS}/*/vendor and class; driver, toolkit, handlers, gpunode's journal and the spec",
    remedy=Remedy(RepairAction.REPLACE, GPUS_BACK),
    needs=(needs.read("pci"),),
)
def gpu_present(host: HostFacts, context: Context) -> CheckOutcome:
    """No GPU is on the PCI bus, though one is expected or the host is set up for GPUs."""
    if host.gpus:
        return None
    want = context.spec.expect.gpus if context.spec else None
    if want == 0:
        return NotApplicable("expect.gpus is 0: no GPU is expected")
    if (elsewhere := not_on_pci(host)) and not want:
        return NotApplicable(elsewhere)
    signs = signs_of_gpu_node(host, context)
    if not want and not signs:
        return NotApplicable("not a GPU node: no NVIDIA GPU on the PCI bus, and none is expected")
    absent = f"no device in {SYSFS} has vendor 0x10de and class 0x0300 or 0x0302"
    expected = f"{want} expected" if want else "this is a node for GPUs"
    return Finding(
        f"no NVIDIA GPU on the PCI bus; {expected}",
        evidence=absent if want else f"{absent}; {listing(signs, 3)}",
        remedy=Remedy(RepairAction.REPLACE, GPUS_BACK if want else f"{GPUS_BACK}; {NONE_MEANT}"),
    )


@check(
    "pci.count-vs-driver",
    Severity.ERROR,
    title="the driver owns every GPU on the bus",
    reads="/proc/driver/nvidia/gpus and nvidia-smi -q -x against the PCI bus",
    remedy=Remedy(
        RepairAction.REBOOT, "read the kernel log for the missing address; reboot once, then inspect the hardware"
    ),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def count_vs_driver(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is on the bus and the driver did not claim it. A warning where an option may have left it out."""
    wanted = {d.address for d in host.own_gpus}
    lost = sorted(wanted - set(host.driver.gpus))
    source = "/proc/driver/nvidia/gpus"
    if not lost and host.driver.smi is not None and host.driver.smi.answered:
        lost = sorted(wanted - {g.pci_address for g in host.driver.smi.gpus})
        source = "nvidia-smi -q -x"
    if not lost:
        return None
    # /proc/driver/nvidia/gpus has the excluded ones too. The option names UUIDs, which may be of a GPU that is gone.
    if set(lost) <= set(host.driver.gpus) and len(lost) <= len(excluded(host)):
        return _left_out(lost)
    return Finding(
        f"{len(wanted)} GPUs on the bus, the driver has {len(wanted) - len(lost)}",
        evidence=f"not in {source}: {listing(lost)}",
        remedy=Remedy(
            RepairAction.REBOOT,
            f"journalctl -k -b | grep -e NVRM -e {named(lost[0])}; reboot once, inspect the GPU if it is still missing",
        ),
        entities=pci(*lost),
    )


def _left_out(lost: Sequence[str]) -> Finding:
    """nv-procfs.c of open-gpu-kernel-modules prints which it is."""
    which = named(f"/proc/driver/nvidia/gpus/{lost[0]}/information")
    return Finding(
        f"{listing(lost)} is left out by an option of the module, or failed",
        evidence=f"not in nvidia-smi -q -x: {listing(lost)}; ExcludedGpus names as many UUIDs (drv.excluded-gpus)",
        remedy=Remedy(
            RepairAction.SUPPORT,
            f"grep Excluded {which}: No means that it failed; then journalctl -k -b | grep NVRM shows why",
        ),
        severity=Severity.WARNING,
        entities=pci(*lost),
    )


@check(
    "pci.fallen-off-bus",
    Severity.ERROR,
    title="every GPU answers on the bus",
    reads=f"first four bytes of {SYSFS}/*/config; the kernel log",
    remedy=Remedy(
        RepairAction.POWER_CYCLE,
        "power the node off and on (a warm reboot is often not enough); check power cables, replace the GPU",
    ),
    needs=(needs.gpu,),
)
def fallen_off_bus(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has fallen off the bus."""
    gone = [d.address for d in host.gpus if d.config_head == OFF_THE_BUS]
    logged = _said_fallen(host)
    if not gone and not logged:
        if all(d.config_head is None for d in host.gpus):
            return NotApplicable("the config space of no GPU could be read")
        return None
    evidence = f"{SYSFS}/{gone[0]}/config reads ff ff ff ff" if gone else f"kernel log: {logged[-1].strip()}"
    return Finding(
        f"{listing(fallen(host)) or 'a GPU'} has {FALLEN}",
        evidence=evidence,
        remedy=Remedy(
            RepairAction.POWER_CYCLE,
            "power the node off and on; when it happens again, check power cables and riser, then replace the GPU",
        ),
        entities=pci(*fallen(host)),
    )


def fallen(host: HostFacts) -> tuple[str, ...]:
    """GPUs that are off the bus by their config space, or by the kernel's log ("PCI:0000:41:00", "0000:41:00.0").

    Those that the bus has no more come last.
    """
    logged = in_lines(host, _said_fallen(host))
    there = [d.address for d in host.gpus]
    silent = {d.address for d in host.gpus if d.config_head == OFF_THE_BUS}
    return (*(a for a in there if a in silent or a in logged), *(a for a in logged if a not in there))


def _said_fallen(host: HostFacts) -> list[str]:
    """A GPU that answered when the driver was loaded again has come back."""
    return since_loaded(host, (line for line in host.driver.kernel_log if FALLEN in line))


def in_lines(host: HostFacts, lines: Sequence[str]) -> tuple[str, ...]:
    """The addresses of the GPUs that these lines of the kernel's log name, with a function or without one.

    One that is not on the bus any more is among them: who accepts a fault of the others does not accept its.
    """
    slots = {d.address: d.address.rpartition(".")[0] for d in host.gpus}
    there = [address for address, slot in slots.items() if any(slot in line for line in lines)]
    named_by_driver = (found["slot"] for line in lines if (found := _OF_GPU.search(line)))
    gone = (f"{slot}.0" for slot in named_by_driver if slot not in slots.values())
    return (*there, *dict.fromkeys(gone))


@check(
    "pci.link-width",
    Severity.WARNING,
    title="PCIe links run at full width",
    reads=f"{SYSFS}/*/current_link_width and max_link_width",
    remedy=Remedy(RepairAction.REPLACE, "reseat the GPU; check riser, retimer and the firmware's bifurcation setting"),
    needs=(needs.gpu,),
)
def link_width(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's PCIe link uses fewer lanes than the GPU has."""
    known = [(d, d.link_width, d.link_width_max) for d in host.gpus]
    # A virtual machine's bus reports 0 or 255 where there is no real link.
    real = [(d, now, most) for d, now, most in known if now is not None and most is not None and 0 < most <= 32]
    if not real:
        return NotApplicable("the link width is not reported (a virtual machine has no real link)")
    narrow = [(d, now, most) for d, now, most in real if now < most]
    if not narrow:
        return None
    device, now, most = narrow[0]
    return Finding(
        f"{listing(d.address for d, _, _ in narrow)} runs on fewer PCIe lanes than it has",
        evidence=f"{SYSFS}/{device.address}/current_link_width is {now}, max_link_width {most}",
        remedy=Remedy(
            RepairAction.REPLACE,
            "reseat the GPU; check riser, retimer and bifurcation; an x8 slot cannot give an x16 GPU more",
        ),
        entities=pci(*(d.address for d, _, _ in narrow)),
    )


@check(
    "pci.bar1-size",
    Severity.ERROR,
    title="BAR1 is mapped",
    reads=f"{SYSFS}/*/resource, second line",
    remedy=Remedy(
        RepairAction.CONFIGURE, "set Above 4G Decoding (and Resizable BAR) in the firmware, or boot with pci=realloc"
    ),
    needs=(needs.gpu,),
)
def bar1_size(host: HostFacts, context: Context) -> CheckOutcome:
    """The firmware did not map BAR1 of a GPU."""
    sizes = [(d, d.bar1_bytes) for d in host.gpus if d.bar1_bytes is not None]
    if not sizes:
        return NotApplicable("no GPU's BAR sizes could be read")
    unmapped = [d.address for d, size in sizes if size == 0]
    if not unmapped:
        return None
    return Finding(
        f"BAR1 of {listing(unmapped)} is not mapped",
        evidence=f"{SYSFS}/{unmapped[0]}/resource line 2 spans 0 bytes",
        remedy=Remedy(RepairAction.CONFIGURE, "set Above 4G Decoding in the firmware setup, or boot with pci=realloc"),
        entities=pci(*unmapped),
    )


@check(
    "pci.driver-bound",
    Severity.ERROR,
    title="the nvidia driver is bound to every GPU",
    reads=f"{SYSFS}/*/driver",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver")),
    needs=(needs.gpu, needs.host_driver),
)
def driver_bound(host: HostFacts, context: Context) -> CheckOutcome:
    """Another kernel driver, or none, holds a GPU."""
    wrong = [d for d in host.gpus if d.driver not in ("nvidia", "vfio-pci")]
    if not wrong:
        return None
    first = wrong[0]
    loaded = host.driver.loaded is not None
    remedy = Remedy(RepairAction.REBOOT, setup("--only", "driver", "--reboot", "if-needed"))
    if first.driver is None and loaded:
        remedy = Remedy(RepairAction.SUPPORT, "journalctl -k -b | grep NVRM shows why the nvidia module refused it")
    return Finding(
        listing(f"{d.address} is bound to {d.driver or 'no driver'}" for d in wrong),
        evidence=_binding(first),
        remedy=remedy,
        entities=pci(*(d.address for d in wrong)),
    )


def _binding(device: PciDevice) -> str:
    link = f"{SYSFS}/{device.address}/driver"
    return f"{link} points to {device.driver}" if device.driver else f"{link} is absent"


@check(
    "pci.runtime-pm",
    Severity.WARNING,
    title="no GPU is suspended by runtime PM",
    reads=f"{SYSFS}/*/power/runtime_status",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl enable --now nvidia-persistenced"),
    needs=(needs.gpu, needs.host_driver),
)
def runtime_pm(host: HostFacts, context: Context) -> CheckOutcome:
    """Runtime PM has suspended a GPU."""
    if all(d.runtime_status is None for d in host.gpus):
        return NotApplicable("runtime power status is not reported")
    suspended = [d.address for d in host.gpus if d.runtime_status in ("suspended", "suspending")]
    if not suspended:
        return None
    return Finding(
        f"{listing(suspended)} is suspended",
        evidence=f"{SYSFS}/{suspended[0]}/power/runtime_status is suspended",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE,
            f"systemctl enable --now nvidia-persistenced; echo on > {named(f'{SYSFS}/{suspended[0]}/power/control')}",
        ),
        entities=pci(*suspended),
    )


@check(
    "pci.numa",
    Severity.WARNING,
    title="the firmware reports the NUMA node of every GPU",
    reads=f"{SYSFS}/*/numa_node",
    remedy=Remedy(RepairAction.CONFIGURE, "update the firmware; enable NUMA (not Node Interleaving) in its setup"),
    needs=(needs.gpu,),
)
def numa(host: HostFacts, context: Context) -> CheckOutcome:
    """The scheduler cannot tell which socket some GPUs belong to."""
    known = [d for d in host.gpus if d.numa_node is not None]
    if not known:
        return NotApplicable("numa_node is not reported")
    placed = [d for d in known if d.numa_node != -1]
    lost = [d.address for d in known if d.numa_node == -1]
    if not placed:
        # One socket and no NUMA at all look the same from the GPUs: -1 everywhere is normal there.
        return NotApplicable("no GPU names a NUMA node: one socket, or a virtual machine")
    if not lost:
        return None
    return Finding(
        f"{listing(lost)} names no NUMA node, {len(placed)} other GPUs do",
        evidence=f"{SYSFS}/{lost[0]}/numa_node is -1",
        entities=pci(*lost),
        remedy=Remedy(RepairAction.CONFIGURE, "update the firmware; enable NUMA (not Node Interleaving) in its setup"),
    )


@check(
    "pci.iommu-mode",
    Severity.WARNING,
    title="the IOMMU leaves alone what GPUs and InfiniBand send each other",
    reads=f"{SYSFS}/*/iommu_group/type; /sys/class/infiniband",
    remedy=Remedy(RepairAction.CONFIGURE, "boot with iommu=pt on the kernel command line"),
    needs=(needs.gpu, needs.host_driver, needs.system),
)
def iommu_mode(host: HostFacts, context: Context) -> CheckOutcome:
    """The IOMMU translates what GPUs send, on bare metal with InfiniBand: GPUDirect RDMA fails or is slow. Without
    InfiniBand, and in a virtual machine, translation is no fault."""
    if host.virtualization is not None:
        return NotApplicable("a virtual machine: its host's IOMMU translates")
    if not infiniband(host):
        return NotApplicable("no InfiniBand port is active")
    kinds = host.system.iommu if host.system else {}
    translated = sorted(address for address, kind in kinds.items() if kind.startswith("DMA"))
    if not translated:
        return None
    return Finding(
        f"the IOMMU translates what {listing(translated)} sends",
        evidence=f"{SYSFS}/{translated[0]}/iommu_group/type is {kinds[translated[0]]}",
        remedy=Remedy(
            RepairAction.CONFIGURE, "add iommu=pt to the kernel command line (GRUB_CMDLINE_LINUX) and reboot"
        ),
    )
