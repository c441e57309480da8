"""Kernel modules that let networks and disks reach the memory of a GPU: peermem, gdrdrv, nvidia-fs."""

from __future__ import annotations

from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.net.rdma import infiniband
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction

LOAD = "modprobe nvidia-peermem, and a file in /etc/modules-load.d that names it"
BROKEN = "ERROR detected invalid context"
DRIVEN = (needs.gpu, needs.host_driver, needs.loaded)


@check(
    "net.peermem",
    Severity.WARNING,
    title="InfiniBand reaches the memory of the GPUs",
    reads="/sys/module/nvidia_peermem; the module's flavour and the kernel's release; the kernel log",
    remedy=Remedy(RepairAction.RELOAD_MODULE, LOAD),
    needs=DRIVEN,
)
def peermem(host: HostFacts, context: Context) -> CheckOutcome:
    """InfiniBand is in use and cannot reach the memory of the GPUs: neither nvidia-peermem nor DMA-BUF is there."""
    logged = next((line for line in host.driver.kernel_log if "peermem" in line and BROKEN in line), None)
    if logged:
        return Finding(
            "nvidia-peermem and the InfiniBand stack do not fit",
            evidence=f"kernel log: {logged.strip()}",
            remedy=Remedy(RepairAction.UPGRADE, "reinstall the driver after the InfiniBand stack, or use DMA-BUF"),
            severity=Severity.ERROR,
        )
    if reason := needs.system(host):
        return NotApplicable(reason)
    if not infiniband(host):
        return NotApplicable("no InfiniBand port is active")
    if "nvidia_peermem" in host.kernel.modules or "nv_peer_mem" in host.kernel.modules:
        return None
    flavour = host.driver.loaded_flavour
    if flavour is None:
        return NotApplicable("whether the module is the open one, which offers DMA-BUF, is not known")
    if flavour == "open" and at_least(host.kernel.release, first_with("kernel", "rdma-dma-buf")):
        return None
    return Finding(
        "InfiniBand does not reach the memory of the GPUs",
        evidence=f"/sys/module/nvidia_peermem is absent; no DMA-BUF with a module that is {flavour} on kernel "
        f"{host.kernel.release}",
        remedy=Remedy(RepairAction.RELOAD_MODULE, LOAD),
    )


@check(
    "net.gdrcopy",
    Severity.WARNING,
    title="gdrdrv is loaded where it is installed",
    reads="dkms status; /sys/module/gdrdrv",
    remedy=Remedy(RepairAction.RELOAD_MODULE, "modprobe gdrdrv"),
    needs=DRIVEN,
)
def gdrcopy(host: HostFacts, context: Context) -> CheckOutcome:
    """GDRCopy's module is installed and not loaded: its library falls back, or fails."""
    return _idle_module(host, "gdrdrv", "gdrdrv")


@check(
    "net.gds",
    Severity.WARNING,
    title="nvidia-fs is loaded where it is installed",
    reads="dkms status; /sys/module/nvidia_fs",
    remedy=Remedy(RepairAction.RELOAD_MODULE, "modprobe nvidia-fs"),
    needs=DRIVEN,
)
def gds(host: HostFacts, context: Context) -> CheckOutcome:
    """GPUDirect Storage's module is installed and not loaded: cuFile reads through the host's memory."""
    return _idle_module(host, "nvidia-fs", "nvidia_fs")


def _idle_module(host: HostFacts, name: str, loaded: str) -> CheckOutcome:
    lines = [line for line in host.driver.dkms if line.module == name]
    if not lines:
        return NotApplicable(f"DKMS has no {name}")
    if loaded in host.kernel.modules:
        return None
    line = next((line for line in lines if line.kernel == host.kernel.release), lines[0])
    built = f"{name}/{line.version}, {line.kernel or 'no kernel'}: {line.state}"
    return Finding(
        f"{name} is installed and not loaded",
        evidence=f"dkms status: {built}; /sys/module/{loaded} is absent",
        remedy=Remedy(
            RepairAction.RELOAD_MODULE,
            f"modprobe {name}; where there is no such module, dkms autoinstall builds it",
        ),
    )
