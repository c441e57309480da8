"""Does the driver fit the GPUs, by NVIDIA's tables?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpunode.catalog.gpus import GpuModel
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import branch
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts, PciDevice
from gpunode.model.installed import installed_version
from gpunode.model.plan import DRIVER_STEP
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, gpunode, setup

if TYPE_CHECKING:
    from gpunode.catalog.load import Catalog

FIT = (needs.gpu, needs.own_driver, needs.version)
SETUP = Remedy(
    RepairAction.UPGRADE,
    gpunode("plan"),
    " shows the driver that fits; ",
    setup("--only", "driver", "--reboot", "if-needed"),
    " installs it",
)


def _version(host: HostFacts) -> str:
    return host.driver.loaded or host.driver.installed or installed_version(host) or ""


def _in_catalog(host: HostFacts, context: Context) -> list[tuple[PciDevice, GpuModel]]:
    """The GPUs that the catalog has more of than a guess."""
    found = [(device, context.catalog.gpu_model(device.device)) for device in host.gpus]
    return [(device, model) for device, model in found if not context.catalog.guessed(model)]


def _unknown(host: HostFacts, context: Context) -> NotApplicable | None:
    """Of a GPU that the catalog does not know only a driver that is bound to it tells whether it fits."""
    known = {device.address for device, _ in _in_catalog(host, context)}
    left = [d for d in host.gpus if d.address not in known and d.driver != "nvidia"]
    if not left:
        return None
    return NotApplicable(
        f"10de:{left[0].device} at {left[0].address} is not in the catalog: which driver it needs is not known"
    )


@check(
    "pci.device-support",
    Severity.ERROR,
    title="a supported driver exists for every GPU",
    reads="PCI device ids against catalog/gpus.yaml and architectures.yaml",
    remedy=Remedy(RepairAction.REPLACE, "replace the GPU"),
    needs=(needs.gpu, needs.own_driver),
)
def device_support(host: HostFacts, context: Context) -> CheckOutcome:
    """No supported NVIDIA driver exists for a GPU of this host."""
    architecture_of = context.catalog.architecture
    kinds = [(device, model, architecture_of(model.architecture)) for device, model in _in_catalog(host, context)]
    old = [one for one in kinds if one[2].refused is not None]
    if not old:
        return _unknown(host, context)
    device, model, architecture = old[0]
    return Finding(
        f"{device.address}: {model.name} has no supported driver",
        evidence=f"10de:{device.device} is {architecture.title}: {architecture.refused}",
        remedy=Remedy(
            RepairAction.REPLACE,
            "replace the GPU, or take it out; the other GPUs can then have a current driver",
        ),
        entities=pci(*(one.address for one, _, _ in old)),
    )


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
    wanted = [(device, model, context.catalog.flavour(model)) for device, model in _in_catalog(host, context)]
    unlike = [one for one in wanted if one[2] not in ("either", flavour)]
    if not unlike:
        return _unknown(host, context)
    device, model, needed = unlike[0]
    return Finding(
        f"{device.address}: {model.name} needs {needed} kernel modules, the driver has {flavour} ones",
        evidence=f"driver {_version(host)} has {flavour} modules; "
        f"10de:{device.device} is {model.architecture.capitalize()}",
        remedy=SETUP,
        entities=pci(*(one.address for one, _, _ in unlike)),
    )


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
    left = [one for one in _in_catalog(host, context) if not _drives(context.catalog, number, one[1])]
    if not left:
        return _unknown(host, context)
    device, model = left[0]
    first, last = context.catalog.first_branch(model), context.catalog.last_branch(model)
    span = f"from {first} on" if last is None else f"from {first} to {last}"
    return Finding(
        f"{device.address}: {model.name} is not supported by branch {number}",
        evidence=f"driver {_version(host)}; branches {span} support this {model.architecture.capitalize()} GPU",
        remedy=SETUP,
        entities=pci(*(one.address for one, _ in left)),
    )


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
        remedy=_upgrade([model for _, model in _in_catalog(host, context)], context.catalog),
        steps=(DRIVER_STEP,),
    )


def _upgrade(models: Sequence[GpuModel], catalog: Catalog) -> Remedy:
    """By name: a driver that is there and drives all GPUs is kept by setup, though its branch has ended."""
    fit = [
        branch
        for branch in catalog.branches
        if branch.status == "supported" and all(_drives(catalog, branch.number, model) for model in models)
    ]
    best = max(fit, key=lambda branch: (branch.kind == "production", branch.kind == "lts", branch.number), default=None)
    if best is None:
        return Remedy(
            RepairAction.REPLACE, "no supported branch drives every GPU here: replace those of the oldest kind"
        )
    named = ("--only", "driver", "--driver", str(best.number))
    return Remedy(
        RepairAction.UPGRADE,
        gpunode("plan", *named),
        " shows the upgrade; ",
        setup(*named, "--reboot", "if-needed"),
        " does it",
    )


def _drives(catalog: Catalog, number: int, model: GpuModel) -> bool:
    last = catalog.last_branch(model)
    return catalog.first_branch(model) <= number and (last is None or number <= last)
