"""The driver's packages: from which repository, by which names, pinned how, held how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode.catalog.distros import ArchivePackages
from gpunode.errors import UnsupportedHost
from gpunode.model.plan import Action, Run, Step
from gpunode.model.spec import DriverSource
from gpunode.packages.base import Wanted
from gpunode.packages.dnf import VERSIONLOCK, Dnf
from gpunode.planner.driver import DriverChoice, choose_driver, offered_branches
from gpunode.planner.present import installed_version, keep_driver, lead_package, refuse_foreign, upstream
from gpunode.planner.repository import Source
from gpunode.planner.site import Site, through_proxy

PATTERNS = ("*nvidia*", "libcuda*", "cuda-drivers*", "libnvsdm*")


def driver_choice(site: Site) -> DriverChoice:
    """Keep what is right, else choose; the choice carries the packages to install, the most telling one first."""
    refuse_foreign(site.host)
    kept = keep_driver(site.host, site.spec, site.cards, site.catalog)
    if kept is not None:
        return kept
    source = _source(site)
    offered = offered_branches(site.distro, source, site.catalog)
    choice = choose_driver(site.spec.driver, site.spec.flavour, site.cards, site.catalog, offered)
    why = choice.why
    if site.distro.archive and source == "distro" and site.spec.driver_source is DriverSource.AUTO:
        why += (f"Secure Boot is on, and {site.distro.name}'s own modules are signed",)
    return replace(choice, source=source, why=why, packages=_packages(site, choice, source))


def install_step(site: Site, choice: DriverChoice, source: Source | None) -> Step:
    """The pin first, since it must be in place before the driver is resolved; then the driver, checked and held."""
    lead = choice.packages[0]
    before = installed_version(site.host)
    refresh = [site.backend.refresh([source.repository])] if source and source.step is None else []
    if source is None:
        refresh = [site.backend.refresh_all()]
    held = [name for name in site.host.packages.held if _is_driver(name)]
    runs: list[Run] = [*refresh, *([site.backend.unhold(sorted(held))] if held else []), *_pin(site, choice)]
    wanted = [Wanted(name, _version(site, choice)) for name in choice.packages]
    runs.append(site.backend.install(wanted, downgrade=before is not None))
    runs += _verify(site, choice, lead)
    version = choice.version or f"of branch {choice.branch}"
    return Step(
        "driver.install",
        f"install {', '.join(choice.packages)} {version}" + (", and hold the set" if site.spec.hold else ""),
        f"{before} is replaced" if before else "no driver is installed",
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=_undo(site, choice, before),
    )


def hold_step(site: Site, choice: DriverChoice) -> Step | None:
    """An installed driver that the next upgrade could tear apart: hold the whole set."""
    lead = lead_package(site.host)
    if not site.spec.hold or lead is None:
        return None
    version = upstream(site.host.packages.installed[lead].version)
    peers = {n for n, p in site.host.packages.installed.items() if _is_driver(n) and upstream(p.version) == version}
    if {*peers, lead} <= site.host.packages.held:
        return None
    return Step(
        "driver.hold",
        f"hold the driver's packages at {version}",
        "an unattended upgrade would replace the libraries below a loaded module",
        (site.backend.same_version(lead, PATTERNS, hold=True),),
        undo=(site.backend.unhold(sorted({*peers, lead} - site.host.packages.held)),),
    )


def fabric_step(site: Site, choice: DriverChoice) -> Step | None:
    """A kept driver on an NVSwitch machine without the fabric manager: add it, at exactly the driver's version."""
    names = _archive(site) if choice.source == "distro" and site.distro.archive else site.distro.cuda
    there = site.host.packages.installed
    lacking = [n for n in (name.format(branch=choice.branch) for name in names.fabric) if n not in there]
    if not site.switches or not lacking or choice.version is None:
        return None
    release = "-1" if site.distro.manager == "apt" and choice.source == "cuda" else ""
    version = f"{choice.version}{release}" if choice.source == "cuda" else None
    runs = (site.backend.refresh_all(), site.backend.install([Wanted(name, version) for name in lacking]))
    return Step(
        "driver.fabric",
        f"install {', '.join(lacking)} {choice.version}",
        f"{len(site.switches)} NVSwitches are here; the fabric manager must be at the driver's version",
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=(site.backend.remove(lacking),),
    )


def _source(site: Site) -> str:
    want, archive = site.spec.driver_source, site.distro.archive
    if want is DriverSource.LOCAL:
        raise UnsupportedHost(
            "--driver-source local needs a folder of packages, which this version cannot be given",
            evidence="it installs from NVIDIA's repository or the distribution's archive",
            remedy="name a mirror with --mirror URL, or choose --driver-source cuda or distro",
        )
    if want is DriverSource.DISTRO:
        _archive(site)
        return "distro"
    if want is DriverSource.AUTO and archive and archive.signed and site.host.security.secure_boot:
        return "distro"
    return "cuda"


def _archive(site: Site) -> ArchivePackages:
    if site.distro.archive is None:
        raise UnsupportedHost(
            f"{site.distro.name}'s own archive has no driver that gpunode installs",
            evidence="catalog/distros.yaml: archive is null",
            remedy="--driver-source cuda takes NVIDIA's repository",
        )
    return site.distro.archive


def _packages(site: Site, choice: DriverChoice, source: str) -> tuple[str, ...]:
    names = _archive(site) if source == "distro" else site.distro.cuda
    driver = names.open if choice.flavour == "open" else names.proprietary
    if site.switches and not names.fabric:
        raise UnsupportedHost(
            f"{site.distro.name}'s own archive has no fabric manager, which {len(site.switches)} NVSwitches need",
            evidence="without it CUDA fails with error 802 (system not yet initialized)",
            remedy="--driver-source cuda takes NVIDIA's repository",
        )
    fabric = names.fabric if site.switches else ()
    flavour = _kernel_flavour(site.host.kernel.release)
    return tuple(name.format(branch=choice.branch, flavour=flavour) for name in (*driver, *fabric))


def _kernel_flavour(release: str) -> str:
    """ "6.8.0-51-generic" -> "generic", "6.8.0-1021-aws" -> "aws", "6.8.0-51-generic-64k" -> "generic-64k" """
    return "-".join(release.split("-")[2:]) or "generic"


def _pin(site: Site, choice: DriverChoice) -> list[Run]:
    if choice.source == "distro":
        return []
    backend = site.backend
    if site.distro.select == "pinning":
        return [backend.install([Wanted(f"nvidia-driver-pinning-{choice.version or choice.branch}")])]
    if site.distro.select == "module" and isinstance(backend, Dnf):
        stream = f"{choice.branch}-open" if choice.flavour == "open" else f"{choice.branch}-dkms"
        return list(backend.stream("nvidia-driver", stream))
    # EL 10 has no module streams: a lock on a version pattern chooses the branch (installation guide).
    return [backend.install([Wanted(VERSIONLOCK)]), backend.hold([f"*nvidia*{choice.version or choice.branch}*"])]


def _version(site: Site, choice: DriverChoice) -> str | None:
    """apt's exact version comes from the pinning package; dnf names it."""
    return choice.version if site.distro.manager == "dnf" else None


def _verify(site: Site, choice: DriverChoice, lead: str) -> list[Run]:
    if choice.source == "distro":
        # A distribution's archive versions its helpers (persistenced, settings) on their own.
        return [site.backend.hold(list(choice.packages))] if site.spec.hold else []
    tools: list[Run] = []
    if site.distro.select == "module" and site.spec.hold:
        tools = [site.backend.install([Wanted(VERSIONLOCK)])]
    return [*tools, site.backend.same_version(lead, PATTERNS, hold=site.spec.hold)]


def _undo(site: Site, choice: DriverChoice, before: str | None) -> tuple[Action, ...]:
    """Back to no driver where there was none. A replaced one is not put back: its packages may be gone by now."""
    if before is not None:
        return ()
    fresh = [name for name in choice.packages if name not in site.host.packages.installed]
    return (site.backend.remove(fresh),) if fresh else ()


def _is_driver(name: str) -> bool:
    toolkit: Sequence[str] = ("nvidia-container", "libnvidia-container", "nvidia-docker")
    return name.startswith(
        ("nvidia-", "libnvidia-", "libcuda1", "cuda-drivers", "kmod-nvidia")
    ) and not name.startswith(tuple(toolkit))
