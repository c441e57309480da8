"""Does the driver fit the GPUs, by NVIDIA's tables?"""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import branch
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, gpunode, setup

FIT = (needs.gpu, needs.host_driver, needs.version)
SETUP = Remedy(
    RepairAction.UPGRADE,
    gpunode("plan"),
    " shows the driver that fits; ",
    setup("--only", "driver", "--reboot", "if-needed"),
    " installs it",
)


def _version(host: HostFacts) -> str:
    return host.driver.loaded or host.driver.installed or ""


@check(
    "pci.device-support",
    Severity.ERROR,
    title="a supported driver exists for every GPU",
    reads="PCI device ids against catalog/gpus.yaml and architectures.yaml",
    remedy=Remedy(RepairAction.REPLACE, "replace the GPU"),
    needs=(needs.gpu, needs.host_driver),
)
def device_support(host: HostFacts, context: Context) -> CheckOutcome:
    """No supported NVIDIA driver exists for a GPU of this host."""
    for device in host.gpus:
        model = context.catalog.gpu_model(device.device)
        architecture = context.catalog.architecture(model.architecture)
        if architecture.refused is not None:
            return Finding(
                f"{device.address}: {model.name} has no supported driver",
                evidence=f"10de:{device.device} is {architecture.title}: {architecture.refused}",
                remedy=Remedy(
                    RepairAction.REPLACE,
                    "replace the GPU, or take it out; the other GPUs can then have a current driver",
                ),
            )
    return None


@check(
    "drv.flavour-vs-arch",
    Severity.ERROR,
    title="flavour (open or proprietary) of the modules fits the GPUs",
    reads="/proc/driver/nvidia/version, modinfo -F license nvidia, catalog/architectures.yaml",
    remedy=SETUP,
    needs=FIT,
)
def flavour_vs_arch(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver has the kernel modules that a GPU cannot work with: No devices were found."""
    flavour = host.driver.loaded_flavour or host.driver.installed_flavour
    if flavour is None:
        return NotApplicable("whether the modules are open or proprietary is not known")
    for device in host.gpus:
        model = context.catalog.gpu_model(device.device)
        needed = context.catalog.flavour(model)
        if needed in ("either", flavour):
            continue
        return Finding(
            f"{device.address}: {model.name} needs {needed} kernel modules, the driver has {flavour} ones",
            evidence=f"driver {_version(host)} has {flavour} modules; "
            f"10de:{device.device} is {model.architecture.capitalize()}",
            remedy=SETUP,
            fix="driver",
        )
    return None


@check(
    "drv.branch-vs-arch",
    Severity.ERROR,
    title="the driver branch supports every GPU",
    reads="the driver's version against catalog/gpus.yaml and architectures.yaml",
    remedy=SETUP,
    needs=FIT,
)
def branch_vs_arch(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver is too old for a GPU, or too new."""
    number = branch(_version(host))
    if number is None:
        return NotApplicable(f"{_version(host)!r} is not one of NVIDIA's version numbers")
    for device in host.gpus:
        model = context.catalog.gpu_model(device.device)
        first, last = context.catalog.first_branch(model), context.catalog.last_branch(model)
        if number < first or (last is not None and number > last):
            span = f"from {first} on" if last is None else f"from {first} to {last}"
            return Finding(
                f"{device.address}: {model.name} is not supported by branch {number}",
                evidence=f"driver {_version(host)}; branches {span} support this {model.architecture.capitalize()} GPU",
                remedy=SETUP,
                fix="driver",
            )
    return None


@check(
    "drv.branch-eol",
    Severity.WARNING,
    title="the driver branch still gets fixes",
    reads="the driver's version against catalog/branches.yaml",
    remedy=SETUP,
    needs=FIT,
)
def branch_eol(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver's branch gets no security fixes any more."""
    number = branch(_version(host))
    row = context.catalog.branch(number) if number is not None else None
    if row is None:
        return NotApplicable(f"the catalog has no row for the branch of driver {_version(host)}")
    if row.status == "supported":
        return None
    supported = ", ".join(str(b.number) for b in context.catalog.branches if b.status == "supported")
    return Finding(
        f"driver branch {number} has ended{f' ({row.end})' if row.end else ''}",
        evidence=f"driver {_version(host)}; supported branches are {supported} (looked up {row.checked})",
        remedy=Remedy(
            RepairAction.UPGRADE,
            gpunode("plan"),
            " shows the upgrade; ",
            setup("--only", "driver", "--reboot", "if-needed"),
            " does it",
        ),
        fix="driver",
    )
