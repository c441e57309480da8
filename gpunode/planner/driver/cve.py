"""A driver with a known CVE is upgraded inside its branch, or kept with the reason why it is not."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.catalog.driver_cves import has_fix, known_cve
from gpunode.model.driver import DriverChoice
from gpunode.model.gpu_users import gpu_users
from gpunode.model.installed import driver_set, exact_pins
from gpunode.model.plan import DRIVER_STEP
from gpunode.model.spec import DriverSource
from gpunode.packages.pins import pinned_by_others, unpinning
from gpunode.planner.driver.source import source_title
from gpunode.planner.site import Site


def is_upgraded(site: Site, kept: DriverChoice) -> bool:
    """Whether the driver on the host has a known CVE, and nothing speaks against its branch's newest."""
    return known_cve(kept.version) is not None and _against(site, kept) is None


def why_kept(site: Site, kept: DriverChoice) -> str:
    """What a plan says of the known CVE of a driver that it keeps; "" where none is known."""
    cve = known_cve(kept.version)
    if cve is None or kept.version is None:
        return ""
    return f"; {cve.sentence(kept.version)}" + ("" if kept.foreign else f"; not upgraded, since {_against(site, kept)}")


def _against(site: Site, kept: DriverChoice) -> str | None:
    cve = known_cve(kept.version)
    if site.spec.driver.exact:
        return f"--driver {site.spec.driver} names it"
    if pins := _pins(site):
        return pins
    if kept.source != "cuda" or site.spec.driver_source is DriverSource.LOCAL:
        archive = "the local repository" if kept.source == "cuda" else source_title(site, kept.source)
        own = sorted(site.host.packages.held & driver_set(site.host))
        unpin = f"{unpinning(site.backend, own)}; " if own else ""
        command = site.backend.words("install", *kept.packages)
        return f"its version is that of {archive}; {unpin}{command} takes the newest there"
    if cve is None or not has_fix(site.catalog, site.distro, cve, kept.flavour):
        return f"NVIDIA's repository for {site.distro.name} has no newer one of branch {kept.branch}"
    if DRIVER_STEP in site.done:
        return f"the repository that this host uses has no newer one of branch {kept.branch}; the next setup asks again"
    working = gpu_users(site.host)
    if working and not site.spec.allow_gpu_in_use:
        use = "uses" if len(working) == 1 else "use"
        return f"{listing(working)} {use} the GPUs; drain the node and run setup again, or use --allow-gpu-in-use"
    return None


def _pins(site: Site) -> str | None:
    """What an admin has pinned of it, as a pin or as the package of NVIDIA's that pins one version."""
    host, backend = site.host, site.backend
    if held := pinned_by_others(host, driver_set(host)):
        are = "it is pinned" if len(held) == 1 else "they are pinned"
        return f"{are} and not by gpunode; {unpinning(backend, held)} removes the pin"
    if packages := exact_pins(host):
        return f"{listing(packages)} pins it, and not by gpunode; {backend.words('purge', *packages)} removes the pin"
    return None
