"""The driver that is on the host already, and whether it matches the spec."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.catalog.gpus import GpuModel
from gpunode.catalog.load import Branch, Catalog
from gpunode.model.driver import DriverChoice, DriverOrigin, ModuleFlavour
from gpunode.model.facts import HostFacts
from gpunode.model.spec import DriverSource, Flavour, Spec
from gpunode.model.versions import DRIVER_VERSION
from gpunode.planner.driver.select import describe, shared_bounds, support

# Packages that stand for a whole driver, most telling first: NVIDIA's repository, then the distributions' archives.
LEADS = (
    r"nvidia-open",
    r"cuda-drivers",
    r"nvidia-headless-no-dkms-\d+(-server)?(-open)?",
    r"nvidia-driver-\d+(-server)?(-open)?",
    r"nvidia-open-driver-G\d\d-signed(-cuda)?-kmp-\w+",
    r"nvidia-driver-G\d\d-kmp-\w+",
    r"nvidia-open-dkms",
    r"nvidia-open-kernel-dkms",
    r"nvidia-kernel-dkms",
    r"nvidia-tesla-\d+-driver",
    r"nvidia-driver-branch-\d+",
    r"nvidia-driver-latest-dkms",
    r"nvidia-driver",
    r"(kmod|akmod)-nvidia(-(open-|latest-)?dkms|-open)?",
)
# Of those, what NVIDIA's repository and SUSE's modules for it provide.
CUDA_LEADS = re.compile(
    r"nvidia-open|cuda-drivers|nvidia-(open-)?driver-G\d\d-.*kmp-\w+|nvidia-driver-(branch-\d+|latest-dkms)|kmod-.*"
)
# A module's package alone is half a driver, such as an rpm transaction that was killed leaves behind.
_MODULES = re.compile(r"(kmod|akmod)-nvidia.*|nvidia-(open-)?driver-G\d\d-.*kmp-\w+|nvidia-open-dkms")
_TOOLS = re.compile(r"nvidia-driver(-cuda)?|nvidia-compute-utils-G\d\d|nvidia-utils|xorg-x11-drv-nvidia.*")
_PACKAGED = re.compile(rf"(?:[0-9]+:)?({DRIVER_VERSION})")


def upstream(version: str) -> str | None:
    """ "3:595.91.07-1.el9" -> "595.91.07"; None for what is not a driver's version."""
    match = _PACKAGED.match(version)
    return match.group(1) if match else None


def is_driver(name: str) -> bool:
    """Whether a package of this name belongs to a driver; the container toolkit's do not."""
    toolkit: Sequence[str] = ("nvidia-container", "libnvidia-container", "nvidia-docker")
    prefixes = ("nvidia-", "libnvidia-", "libcuda1", "cuda-drivers", "kmod-nvidia", "linux-modules-nvidia-", "libnvsdm")
    return name.startswith(prefixes) and not name.startswith(tuple(toolkit))


def lead_package(host: HostFacts) -> str | None:
    """The installed package that stands for the driver, None when no package provides one."""
    names = [n for n, p in host.packages.installed.items() if upstream(p.version) and p.status[:1] in "ih"]
    for pattern in LEADS:
        found = sorted(n for n in names if re.fullmatch(pattern, n))
        if found:
            return found[0]
    return None


def installed_version(host: HostFacts) -> str | None:
    """What will be loaded: the module on disk, else what the packages say (its module is not built yet)."""
    # A module whose version is none of NVIDIA's (somebody's own build) says nothing about branches.
    if re.match(r"[0-9]{3}\.[0-9]", host.driver.installed or ""):
        return host.driver.installed
    lead = lead_package(host)
    return upstream(host.packages.installed[lead].version) if lead else None


def installed_source(host: HostFacts) -> DriverOrigin | None:
    """ "cuda" (NVIDIA's names) or "distro": where the installed driver came from; None without one."""
    lead = lead_package(host)
    return None if lead is None else "cuda" if CUDA_LEADS.fullmatch(lead) else "distro"


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
    bounds = shared_bounds(models, catalog, number)
    fits = bounds.drive(number) and flavour in bounds.flavours
    source = installed_source(host) or "distro"
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
        source=source,
        packages=(lead,) if lead else (),
        kept=True,
        signed=_prebuilt(lead),
    )


def _newer(number: int, catalog: Catalog) -> Branch | None:
    """A branch that came after this catalog: open modules, and its end of support is not known."""
    if number <= max(b.number for b in catalog.branches):
        return None
    return Branch(
        number, "unknown", "supported", None, None, None, True, True, "newer than the catalog", "", "unverified"
    )


def _asked_for(spec: Spec, version: str, flavour: ModuleFlavour | None, source: DriverOrigin) -> bool:
    if spec.flavour is not Flavour.AUTO and flavour != spec.flavour.value:
        return False
    wanted = {DriverSource.DISTRO: "distro", DriverSource.CUDA: "cuda"}.get(spec.driver_source, source)
    if wanted != source:
        return False
    if spec.driver.exact:
        return spec.driver.exact == version
    return spec.driver.branch is None or spec.driver.branch == int(version[:3])


def _flavour_of(lead: str | None) -> ModuleFlavour | None:
    if lead is None:
        return None
    return "open" if "open" in lead else "proprietary"


def _prebuilt(lead: str | None) -> bool:
    """Ubuntu's no-dkms packages and SUSE's signed ones ship modules; all others have DKMS build them."""
    return lead is not None and ("no-dkms" in lead or "-signed-" in lead)
