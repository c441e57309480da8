"""The container toolkit: four packages, one version, pinned as one set."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.editing.diff import unified
from gpunode.engines import toolkit_config
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts
from gpunode.model.plan import TOOLKIT_CONFIG_STEP, Kept, Step
from gpunode.model.spec import TOOLKIT_CONFIG, Spec, ToolkitConfig
from gpunode.model.versions import is_before
from gpunode.packages.base import Wanted, installation, missing
from gpunode.packages.pins import pinned_by_others, unpinning
from gpunode.planner.driver.installed import lifted_pins
from gpunode.planner.engines.low_level import with_low_level
from gpunode.planner.engines.rootless import wanted_toolkit_config
from gpunode.planner.install.branch_pin import pinned_again
from gpunode.planner.repos.repository import toolkit_source
from gpunode.planner.site import Site, through_proxy
from gpunode.remedy import Remedy, RepairAction

Outcome = Step | Kept
# What an install of the toolkit may take away: its own predecessors.
MINE = ("*nvidia-container*", "nvidia-docker*")


def toolkit_steps(site: Site) -> tuple[Outcome, ...]:
    """Repository, packages and pin, or the reason why each of them is unchanged."""
    there = installed_set(site)
    if there is not None and _may_stay(site, there):
        if lost := site.host.toolkit.lost:
            return _made_anew(site, there, lost)
        hold = _hold(site)
        against = _why_kept(site, there)
        kept = Kept("toolkit.install", f"container toolkit {there}{against}{_legacy(site)}", beware=bool(against))
        return (kept, hold) if hold else (kept,)
    if site.distro.toolkit:
        _refuse_exact(site)
        return (_install(site, None, there, (site.backend.refresh_all(),)),)
    _refuse_pinned(site, there)
    source = toolkit_source(site)
    repository: Outcome | None = source.step or source.kept
    version = site.spec.toolkit.version or site.catalog.toolkit.latest
    refresh = (site.backend.refresh([source.repository]),) if source.step is None else ()
    return (*([repository] if repository else []), _install(site, version, there, refresh))


def _made_anew(site: Site, there: str, lost: str) -> tuple[Outcome, ...]:
    """The packages are there, and a program of theirs is not: somebody deleted it, and no install would miss it."""
    source = None if site.distro.toolkit else toolkit_source(site)
    repository = (source.step or source.kept) if source else None
    refresh = site.backend.refresh([source.repository]) if source else site.backend.refresh_all()
    names, backend = toolkit_packages(site), site.backend
    held = sorted(site.host.packages.held & set(names))
    runs = [*([] if source and source.step else [refresh]), *([backend.unhold(held)] if held else [])]
    runs.append(backend.reinstall([Wanted(name, site.host.packages.installed[name].version) for name in names]))
    runs.append(backend.same_version(names[0], names, hold=site.spec.hold or bool(held)))
    step = Step(
        "toolkit.install",
        f"install {names[0]} {there} and its companions again",
        f"{lost} is gone, though the packages are installed",
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=pinned_again(site, held),
        installs="toolkit",
        replan_after=True,
    )
    return (repository, step) if repository else (step,)


def toolkit_packages(site: Site) -> tuple[str, ...]:
    """The set, most telling first: NVIDIA's four, or what the distribution makes of them."""
    return site.distro.toolkit or site.catalog.toolkit.packages


def installed_set(site: Site) -> str | None:
    """The version of the set, "1.20.0", "1.20.0~rc.1"; None when a package is absent, half-configured or at another."""
    found = {p: site.host.packages.installed.get(p) for p in toolkit_packages(site)}
    versions = {v.version for v in found.values() if v is not None and v.configured}
    if len(versions) != 1 or any(v is None or not v.configured for v in found.values()):
        return None
    return versions.pop().split("-")[0].split(":")[-1]


def _refuse_exact(site: Site) -> None:
    """Raises UnsupportedHost for a version that a distribution's archive, which has one, cannot be requested."""
    if site.spec.toolkit.version is not None:
        raise UnsupportedHost(
            f"an exact toolkit version cannot be asked for on {site.distro.name}",
            evidence=f"{site.distro.toolkit[0]} comes from its own archive, which has one version",
            remedy="use --toolkit auto",
        )


def _refuse_pinned(site: Site, there: str | None) -> None:
    """Raises UnsupportedHost for a pin that is not gpunode's, where --toolkit asks for another version."""
    held = pinned_by_others(site.host, toolkit_packages(site))
    if site.spec.toolkit.version is None or not held:
        return
    are = f"{'is' if len(held) == 1 else 'are'} pinned" + (f" at {there}" if there else "")
    raise UnsupportedHost(
        f"{listing(held)} {are}, and not by gpunode",
        evidence=f"--toolkit {site.spec.toolkit.version} is another version, and gpunode's journal has no such package",
        remedy=Remedy(
            RepairAction.CONFIGURE, f"{unpinning(site.backend, held)} removes the pin; or leave out --toolkit"
        ),
    )


def config_outcome(host: HostFacts, spec: Spec, asked: bool = True, *, installing: bool) -> Outcome | None:
    """The toolkit's own config.toml, where anything of it is asked for, or an engine that is set up needs it.

    `asked`: the toolkit is one of the parts that are set up.
    `installing`: this plan installs the toolkit, whose packages ship the file; the next pass edits that one.
    """
    file, rootless = host.file(TOOLKIT_CONFIG), wanted_toolkit_config(host, spec)
    want = with_low_level(host, spec, rootless)
    if want == (ToolkitConfig() if asked else spec.toolkit_config):
        return None
    if installing and not file.exists:
        return Kept(TOOLKIT_CONFIG_STEP, f"{file.path} is shipped with the toolkit and is edited after that")
    rewrite = toolkit_config.rewrite(file, want)
    if not rewrite.changed:
        return Kept(TOOLKIT_CONFIG_STEP, f"{file.path} matches the spec")
    edit = rewrite.main
    return Step(
        TOOLKIT_CONFIG_STEP,
        f"{edit.path}: {', '.join(rewrite.added)}",
        "; ".join((f"{_who(spec, rootless, want)}; the runtime reads it whenever a container starts", *rewrite.notes)),
        (PutFile(edit.path, edit.after, edit.mode, expect_sha256=file.sha256),),
        diff=unified(edit.path, edit.before, edit.after),
    )


def _who(spec: Spec, rootless: ToolkitConfig, want: ToolkitConfig) -> str:
    if want != rootless:
        return (
            "nvidia-container-runtime has to start what CRI-O starts containers by: those that it made otherwise count "
            "as stopped when CRI-O is restarted"
        )
    return "it is asked for" if want == spec.toolkit_config else "rootless Docker cannot write device rules"


def _may_stay(site: Site, version: str) -> bool:
    """It is what is asked for, or it has no known CVE, or an admin pinned it all the same."""
    if site.spec.toolkit.version is not None:
        return version == site.spec.toolkit.version
    return _is_safe(site, version) or bool(pinned_by_others(site.host, toolkit_packages(site)))


def _is_safe(site: Site, version: str) -> bool:
    return not is_before(version, site.catalog.toolkit.floor)


def _why_kept(site: Site, version: str) -> str:
    """What speaks against a version that is kept, and why it is kept all the same; "" where nothing does."""
    if _is_safe(site, version):
        return ""
    held = pinned_by_others(site.host, toolkit_packages(site))
    if site.spec.toolkit.version is None:
        why = f"not upgraded, since it is pinned and not by gpunode; {unpinning(site.backend, held)} removes the pin"
    else:
        why = f"not upgraded, since --toolkit {version} names it"
    return f" has {_cve(site)}; {why}"


def _cve(site: Site) -> str:
    return f"{site.catalog.toolkit.floor_cve}, fixed in {site.catalog.toolkit.floor}"


def _install(site: Site, version: str | None, there: str | None, refresh: tuple[Run, ...]) -> Step:
    """`version` None: the archive's own."""
    names, backend = toolkit_packages(site), site.backend
    wanted = [Wanted(name, f"{version}{site.catalog.toolkit.package_release}" if version else None) for name in names]
    held = sorted(site.host.packages.held & set(names))
    downgrade = any(name in site.host.packages.installed for name in names)
    runs = [*refresh, *([backend.unhold(held)] if held else [])]
    runs += installation(backend, wanted, MINE, downgrade=downgrade)
    lock = missing([Wanted(name) for name in backend.hold_tools], site.host.packages) if site.spec.hold else ()
    runs += [backend.install(lock)] if lock else []
    runs.append(backend.same_version(names[0], names, hold=site.spec.hold))
    fresh = [name for name in names if name not in site.host.packages.installed]
    companions = f"its {'three companions' if len(names) == 4 else 'companion'}"
    return Step(
        "toolkit.install",
        f"install {names[0]}{f' {version}' if version else ''} and {companions}"
        + (", and pin them" if site.spec.hold else "")
        + _below_floor(site, version)
        + lifted_pins(site.host, held),
        _why(site, there),
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=(*((backend.remove(fresh),) if fresh else ()), *pinned_again(site, held)),
        installs="toolkit",
        replan_after=True,
    )


def _why(site: Site, there: str | None) -> str:
    if there is None:
        return f"containers get their GPUs through it; its {_count(site)} packages work in one version only"
    pinned = " and pinned" if site.host.packages.held & set(toolkit_packages(site)) else ""
    if site.spec.toolkit.version is None:
        return f"{there} is installed{pinned} and has {_cve(site)}"
    return f"{there} is installed{pinned}"


def _below_floor(site: Site, version: str | None) -> str:
    """A word to whoever asks for a version with a known hole."""
    return f" (beware: {version} has {_cve(site)})" if version and not _is_safe(site, version) else ""


def _hold(site: Site) -> Step | None:
    loose = sorted(set(toolkit_packages(site)) - site.host.packages.held)
    if not site.spec.hold or not loose:
        return None
    return Step(
        "toolkit.hold",
        "pin the container toolkit's packages",
        f"an upgrade that takes only some of the {_count(site)} breaks their dependencies",
        (site.backend.hold(loose),),
        undo=(site.backend.unhold(loose),),
    )


def _count(site: Site) -> str:
    return {2: "two", 3: "three", 4: "four"}[len(toolkit_packages(site))]


def _legacy(site: Site) -> str:
    old = [name for name in site.catalog.toolkit.replaces if name in site.host.packages.installed]
    return f"; {', '.join(old)} is left over from before and no longer needed" if old else ""
