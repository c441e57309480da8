"""A driver that gpunode does not manage: recognised, not changed, with the commands to hand it over."""

from __future__ import annotations

from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.driver import ForeignDriver
from gpunode.model.facts import HostFacts
from gpunode.model.installed import lead_package, upstream
from gpunode.remedy import Remedy, RepairAction, setup


def foreign_origin(host: HostFacts, catalog: Catalog) -> ForeignDriver | None:
    """Who owns the driver of this host, when it is neither a package manager nor gpunode."""
    driver = host.driver
    if driver.container:
        return ForeignDriver(
            "a driver container (GPU Operator) owns the driver of this host",
            "/run/nvidia/driver is there",
            "set driver.enabled=false in the GPU Operator's ClusterPolicy and reboot",
        )
    if driver.image is not None and (driver.installed or lead_package(host)):
        name = next((i.name for i in catalog.images if i.mark == driver.image), "an image with a driver of its own")
        return ForeignDriver(
            f"the driver belongs to the image that this host was made from: {name}",
            f"{driver.image} is there",
            "let the image's own tools update it, or start from a plain image of the same system",
        )
    if driver.runfile and (lead_package(host) is None or _beside_packages(host)):
        return ForeignDriver(
            "the driver was installed from a .run file, which packages would collide with",
            "/usr/bin/nvidia-uninstall is there" + _beside_packages(host),
            "run nvidia-uninstall, then gpunode setup again",
        )
    if driver.installed and lead_package(host) is None:
        path = next((t.nvidia_module for t in host.kernel.trees if t.release == host.kernel.release), None)
        return ForeignDriver(
            f"driver {driver.installed} is of unknown origin: no installed package provides it",
            f"{path or 'modinfo nvidia'} holds it, and the package list names no driver",
            "find who put it there (modinfo -F filename nvidia), remove it and its libraries, run gpunode setup again",
        )
    return None


def _beside_packages(host: HostFacts) -> str:
    """How we know that the module is not that of the packages beside it; "" where it is, or where none is there yet.

    An uninstaller that was left behind says nothing of a module that has the packages' version.
    """
    lead, installed = lead_package(host), host.driver.installed
    packaged = upstream(host.packages.installed[lead].version) if lead else None
    if installed is None or packaged in (None, installed):
        return ""
    return f", and the module is {installed} beside {lead} {packaged}"


def refuse_foreign(host: HostFacts, origin: ForeignDriver) -> UnsupportedHost:
    """The error for a driver that would have to change: two owners of one driver break it."""
    return UnsupportedHost(
        f"{host.hostname}: {origin.summary}",
        evidence=origin.evidence,
        remedy=Remedy(
            RepairAction.CONFIGURE,
            setup("--only", "toolkit,runtime"),
            f" does not change the driver; to change it: {origin.hand_over}",
        ),
    )
