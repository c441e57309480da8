"""A driver that is known not to build on a kernel of the host is refused, or its build is left out and said."""

from __future__ import annotations

from gpunode.catalog.kernels import misfit
from gpunode.errors import UnsupportedHost
from gpunode.model.driver import DriverChoice
from gpunode.model.plan import BUILD_STEP, Kept
from gpunode.planner.kernel.modules import kernels, without_module
from gpunode.planner.site import Site


def refuse_misfit(site: Site, driver: DriverChoice) -> None:
    """Raises UnsupportedHost where the driver that would be installed does not build on a kernel that may boot.

    Not where its modules come built, nor from a distribution's archive, which patches drivers for its own kernels.
    """
    branch = site.catalog.branch(driver.branch)
    latest = branch.latest if branch else None
    version = driver.version or latest
    if driver.kept or driver.signed or driver.source == "distro" or version is None:
        return
    for kernel in kernels(site.host):
        row = misfit(version, kernel)
        if row is None:
            continue
        newest = driver.version and latest and misfit(latest, kernel) is None
        way = f"use --driver {driver.branch}, whose newest builds" if newest else "use another branch (--driver)"
        raise UnsupportedHost(
            f"{site.host.hostname}: {row.sentence(version, kernel)}",
            evidence=f"catalog/kernels.yaml ({row.source})",
            remedy=f"{way}, or an older kernel",
        )


def misfit_kept(site: Site, driver: DriverChoice) -> Kept | None:
    """What is said of a kept driver for whose kernel nothing is built, since that is known to fail."""
    if not driver.kept or driver.signed or driver.version is None:
        return None
    found = ((kernel, misfit(driver.version, kernel)) for kernel in without_module(site.host))
    said = [row.sentence(driver.version, kernel) for kernel, row in found if row]
    return Kept(BUILD_STEP, f"no module is built: {'; '.join(said)}") if said else None
