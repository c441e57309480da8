"""The driver that is on the host already, and whether it matches the spec."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing
from gpunode.catalog.gpus import GpuModel
from gpunode.catalog.load import Branch, Catalog
from gpunode.model.driver import DriverChoice, DriverOrigin, ModuleFlavour
from gpunode.model.facts import HostFacts
from gpunode.model.installed import installed_source, installed_version, lead_package
from gpunode.model.signed_modules import built_by_dkms, signed_kind
from gpunode.model.spec import DriverSource, Flavour, Spec
from gpunode.packages.pins import pinned_by_others
from gpunode.planner.driver.select import describe, shared_bounds, support
from gpunode.regex import regex

# A module's package alone is half a driver, such as an rpm transaction that was killed leaves behind.
_MODULES = regex(r"(kmod|akmod)-nvidia.*|nvidia-(open-)?driver-G\d\d-.*kmp-\w+|nvidia-open-dkms")
_TOOLS = regex(r"nvidia-driver(-cuda)?|nvidia-compute-utils-G\d\d|nvidia-utils|xorg-x11-drv-nvidia.*")


def lifted_pins(host: HostFacts, held: Sequence[str]) -> str:
    """What a plan says that removes pins of packages which gpunode did not install; "" where it removes none."""
    theirs = pinned_by_others(host, held)
    return f"; this removes the pin of {listing(theirs)}, not installed by gpunode" if theirs else ""


def half_driver(host: HostFacts) -> str | None:
    """The module's package where it came alone: rpm lists it as installed though its script was interrupted."""
    lead = lead_package(host)
    if lead is None or not _MODULES.fullmatch(lead):
        return None
    return None if any(_TOOLS.fullmatch(name) for name in host.packages.installed) else lead


def keep_driver(host: HostFacts, spec: Spec, models: Sequence[GpuModel], catalog: Catalog) -> DriverChoice | None:
    """The driver on the host when it is what the spec asks for; None when another one is to be installed."""
    version = installed_version(host)
    if version is None or half_driver(host):
        return None
    number, lead = int(version[:3]), lead_package(host)
    branch = catalog.branch(number) or _newer(number, catalog)
    flavour = host.driver.installed_flavour or _flavour_of(lead)
    bound = {gpu.device for gpu in host.gpus if gpu.driver == "nvidia"}
    # A driver that is bound to a GPU which the catalog does not know drives it: the guess is not asked.
    bounds = shared_bounds([m for m in models if not (catalog.guessed(m) and m.id in bound)], catalog, number)
    fits = bounds.drive(number) and flavour in bounds.flavours
    source = installed_source(host)
    if branch is None or branch.status == "dead" or not fits or not _asked_for(spec, version, flavour, source):
        return None
    reason = "it drives all GPUs" if spec.driver.kind == "auto" else f"it is what --driver {spec.driver} asks for"
    return DriverChoice(
        branch=number,
        version=version,
        flavour=flavour or "open",
        reasons=(f"it is installed and {reason}: {describe(models, catalog)}", support(branch)),
        branch_kind=branch.kind,
        branch_status=branch.status,
        end_of_support=branch.end,
        source=source or "distro",
        packages=(lead,) if lead else (),
        kept=True,
        signed=_prebuilt(host, lead),
    )


def _newer(number: int, catalog: Catalog) -> Branch | None:
    """A branch that came after this catalog: open modules, and its end of support is not known."""
    if number <= max(b.number for b in catalog.branches):
        return None
    return Branch(
        number, "unknown", "supported", None, None, None, None, True, True, "newer than the catalog", "", "unverified"
    )


def _asked_for(spec: Spec, version: str, flavour: ModuleFlavour | None, source: DriverOrigin | None) -> bool:
    """`source`: None for a driver without a package, which is of none that can be asked for."""
    if spec.flavour is not Flavour.AUTO and flavour != spec.flavour.value:
        return False
    wanted = {DriverSource.DISTRO: "distro", DriverSource.CUDA: "cuda"}.get(spec.driver_source, source)
    if wanted != source or (source is None and spec.driver_source is not DriverSource.AUTO):
        return False
    if spec.driver.exact:
        return spec.driver.exact == version
    return spec.driver.branch is None or spec.driver.branch == int(version[:3])


def _flavour_of(lead: str | None) -> ModuleFlavour | None:
    if lead is None:
        return None
    return "open" if "open" in lead else "proprietary"


def _prebuilt(host: HostFacts, lead: str | None) -> bool:
    """SUSE's signed packages ship modules, and Ubuntu's linux-modules-nvidia; all others have DKMS build them."""
    return signed_kind(host) is not None or (lead is not None and "-signed-" in lead and not built_by_dkms(host))
