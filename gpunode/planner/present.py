"""The driver that is on the host already: may it stay, is it ours to touch?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.catalog.gpus import Card
from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts
from gpunode.model.spec import Flavour, Spec
from gpunode.planner.driver import DriverChoice, describe, shared_bounds, support

# Packages that stand for a whole driver, most telling first: NVIDIA's repository, then Ubuntu's and Debian's archives.
LEADS = (
    r"nvidia-open",
    r"cuda-drivers",
    r"nvidia-headless-no-dkms-\d+(-server)?(-open)?",
    r"nvidia-driver-\d+(-server)?(-open)?",
    r"nvidia-open-kernel-dkms",
    r"nvidia-kernel-dkms",
    r"nvidia-driver",
    r"kmod-nvidia-(open-|latest-)?dkms",
)
DRIVER_VERSION = re.compile(r"^(?:\d+:)?(\d{3}(?:\.\d+){1,2})")


def upstream(version: str) -> str | None:
    """ "3:595.91.07-1.el9" -> "595.91.07"; None for what is not a driver's version."""
    match = DRIVER_VERSION.match(version)
    return match.group(1) if match else None


def lead_package(host: HostFacts) -> str | None:
    """The installed package that stands for the driver, None when no package brought one."""
    names = [n for n, p in host.packages.installed.items() if upstream(p.version) and p.status[:1] in "ih"]
    for pattern in LEADS:
        found = sorted(n for n in names if re.fullmatch(pattern, n))
        if found:
            return found[0]
    return None


def installed_version(host: HostFacts) -> str | None:
    """What will be loaded: the module on disk, else what the packages say (its module is not built yet)."""
    if host.driver.installed:
        return host.driver.installed
    lead = lead_package(host)
    return upstream(host.packages.installed[lead].version) if lead else None


def refuse_foreign(host: HostFacts) -> None:
    """Raises UnsupportedHost for a driver that another installer owns: two owners of one driver break it."""
    if host.driver.container:
        raise UnsupportedHost(
            f"{host.hostname}: a driver container (GPU Operator) owns the driver of this host",
            evidence="/run/nvidia/driver is there",
            remedy="leave it to the operator: gpunode setup --driver none",
        )
    if host.driver.runfile and lead_package(host) is None:
        raise UnsupportedHost(
            f"{host.hostname}: the driver was installed from a .run file, which packages would collide with",
            evidence="/usr/bin/nvidia-uninstall is there",
            remedy="run nvidia-uninstall and gpunode setup again, or keep it with gpunode setup --driver none",
        )


def keep_driver(host: HostFacts, spec: Spec, cards: Sequence[Card], catalog: Catalog) -> DriverChoice | None:
    """The driver on the host when it is what the spec asks for; None when another one shall be installed."""
    version = installed_version(host)
    if version is None:
        return None
    branch = catalog.branch(int(version[:3]))
    flavour = host.driver.installed_flavour or _flavour_of(lead_package(host))
    bounds = shared_bounds(cards, catalog)
    fits = bounds.first <= int(version[:3]) <= (bounds.last or 999) and flavour in bounds.flavours
    if branch is None or branch.status == "dead" or not fits or not _asked_for(spec, version, flavour):
        return None
    lead = lead_package(host)
    source = "cuda" if lead in ("nvidia-open", "cuda-drivers") else "distro"
    reason = "it drives all cards" if spec.driver.kind == "auto" else f"it is what --driver {spec.driver} asks for"
    return DriverChoice(
        branch=branch.number,
        version=version,
        flavour=flavour or "open",
        why=(f"it is installed and {reason}: {describe(cards, catalog)}; {support(branch)}",),
        expires=branch.end,
        source=source,
        packages=(lead,) if lead else (),
        kept=True,
    )


def _asked_for(spec: Spec, version: str, flavour: str | None) -> bool:
    if spec.flavour is not Flavour.AUTO and flavour != spec.flavour.value:
        return False
    if spec.driver.exact:
        return spec.driver.exact == version
    return spec.driver.branch is None or spec.driver.branch == int(version[:3])


def _flavour_of(lead: str | None) -> str | None:
    if lead is None:
        return None
    return "open" if "open" in lead else "proprietary"
