"""The container toolkit: four packages, one version, held as one set."""

from __future__ import annotations

from gpunode.model.plan import Action, Kept, Step
from gpunode.packages.base import Wanted, missing
from gpunode.packages.dnf import VERSIONLOCK
from gpunode.planner.repository import toolkit_source
from gpunode.planner.site import Site, through_proxy

Outcome = Step | Kept


def toolkit_steps(site: Site) -> tuple[Outcome, ...]:
    """Repository, packages and hold, or the reason why each of them may stay."""
    there = installed_set(site)
    if there is not None and _may_stay(site, there):
        hold = _hold(site)
        kept = Kept("toolkit.install", f"container toolkit {there} stays{_legacy(site)}")
        return (kept, hold) if hold else (kept,)
    source = toolkit_source(site)
    repository: Outcome | None = source.step or source.kept
    version = site.spec.toolkit.version or site.catalog.toolkit.latest
    refresh = (site.backend.refresh([source.repository]),) if source.step is None else ()
    return (*([repository] if repository else []), _install(site, version, there, refresh))


def installed_set(site: Site) -> str | None:
    """The version of the four packages, "1.20.0"; None when one is absent, half-configured or at another version."""
    found = {p: site.host.packages.installed.get(p) for p in site.catalog.toolkit.packages}
    versions = {v.version for v in found.values() if v is not None and v.configured}
    if len(versions) != 1 or any(v is None or not v.configured for v in found.values()):
        return None
    return versions.pop().split("-")[0].split(":")[-1]


def _may_stay(site: Site, version: str) -> bool:
    if site.spec.toolkit.version is not None:
        return version == site.spec.toolkit.version
    return _numbers(version) >= _numbers(site.catalog.toolkit.floor)


def _install(site: Site, version: str, there: str | None, refresh: tuple[Action, ...]) -> Step:
    toolkit, backend = site.catalog.toolkit, site.backend
    wanted = [Wanted(name, f"{version}{toolkit.package_release}") for name in toolkit.packages]
    held = sorted(site.host.packages.held & set(toolkit.packages))
    downgrade = any(name in site.host.packages.installed for name in toolkit.packages)
    runs = [*([backend.unhold(held)] if held else []), backend.install(wanted, downgrade=downgrade)]
    if site.spec.hold:
        lock = [Wanted(VERSIONLOCK)] if site.distro.manager == "dnf" else []
        runs += [backend.install(lock)] if missing(lock, site.host.packages) else []
        runs.append(backend.hold(toolkit.packages))
    fresh = [name for name in toolkit.packages if name not in site.host.packages.installed]
    return Step(
        "toolkit.install",
        f"install {toolkit.packages[0]} {version} and its three companions"
        + (", and hold them" if site.spec.hold else ""),
        _why(site, there),
        refresh + tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=(backend.remove(fresh),) if fresh else (),
    )


def _why(site: Site, there: str | None) -> str:
    if there is None:
        return "containers get their GPUs through it; its four packages work in one version only"
    if site.spec.toolkit.version is None:
        return f"{there} is installed: {site.catalog.toolkit.floor_why}"
    return f"{there} is installed"


def _hold(site: Site) -> Step | None:
    loose = sorted(set(site.catalog.toolkit.packages) - site.host.packages.held)
    if not site.spec.hold or not loose:
        return None
    return Step(
        "toolkit.hold",
        "hold the container toolkit's packages",
        "an upgrade that takes only some of the four breaks their dependencies",
        (site.backend.hold(loose),),
        undo=(site.backend.unhold(loose),),
    )


def _legacy(site: Site) -> str:
    old = [name for name in site.catalog.toolkit.replaces if name in site.host.packages.installed]
    return f"; {', '.join(old)} is left over from before and no longer needed" if old else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
