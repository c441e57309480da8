"""The driver's packages: chosen, installed as one set of one version, pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.catalog.distros import Names
from gpunode.catalog.driver_cves import known_cve
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, Run
from gpunode.model.driver import DriverChoice, DriverOrigin
from gpunode.model.installed import (
    driver_set,
    installed_source,
    installed_version,
    is_driver,
    lead_package,
    upstream,
)
from gpunode.model.plan import DRIVER_STEP, HOLD_STEP, Step
from gpunode.model.signed_modules import signed_kind
from gpunode.model.spec import DriverRequest, Flavour
from gpunode.packages.base import Wanted, installation, missing
from gpunode.planner.driver.cve import is_upgraded
from gpunode.planner.driver.explain import alternatives
from gpunode.planner.driver.foreign import foreign_origin, refuse_foreign
from gpunode.planner.driver.installed import half_driver, keep_driver, lifted_pins
from gpunode.planner.driver.one_branch import of_one_branch
from gpunode.planner.driver.select import choose_driver, describe
from gpunode.planner.driver.source import (
    chosen_source,
    fabric_names,
    names_of,
    offer,
    package_names,
    policy,
    why_base,
    why_source,
)
from gpunode.planner.install.branch_pin import pattern, pin, pinned_again, unpin
from gpunode.planner.kernel.dkms import with_module
from gpunode.planner.kernel.signed_modules import brings_signed
from gpunode.planner.repos.repository import Source
from gpunode.planner.site import Site, through_proxy
from gpunode.remedy import Remedy, RepairAction, setup

PATTERNS = ("*nvidia*", "libcuda*", "cuda-drivers*", "libnvsdm*")
# What an install of the driver may take away: the other flavour, the other branch, the other source's set.
MINE = (*PATTERNS, "xserver-xorg-video-nvidia*", "xorg-x11-drv-nvidia*")


def driver_choice(site: Site) -> DriverChoice:
    """Keep what is right, else choose; the choice lists the packages to install, the most telling one first."""
    kept = keep_driver(site.host, site.spec, site.gpu_models, site.catalog)
    origin = foreign_origin(site.host, site.catalog)
    if origin is not None:
        if kept is None:
            raise refuse_foreign(site.host, origin)
        return replace(kept, foreign=origin, source=kept.source if kept.packages else "none")
    if kept is not None:
        return _upgraded(site, kept) if is_upgraded(site, kept) else kept
    if site.distro.refused is not None:
        raise _no_driver(site, site.distro.refused)
    source = chosen_source(site)
    return _chosen(site, source, site.spec.driver, site.spec.flavour)


def _upgraded(site: Site, kept: DriverChoice) -> DriverChoice:
    """The newest of the same branch, flavour and source, in place of one with a known CVE."""
    choice = _chosen(site, kept.source, DriverRequest("branch", branch=kept.branch), Flavour(kept.flavour))
    cve = known_cve(kept.version)
    reason = f"{cve.sentence(kept.version or '')}: it is upgraded in its branch" if cve else "it is upgraded"
    return replace(choice, reasons=(reason, *choice.reasons))


def _chosen(site: Site, source: DriverOrigin, request: DriverRequest, flavour: Flavour) -> DriverChoice:
    provided = offer(site, source)
    choice = choose_driver(request, flavour, site.gpu_models, site.catalog, provided)
    reasons = tuple(reason for reason in (why_source(site, source), why_base(site)) if reason)
    names = names_of(site, source, choice.branch)
    newest = (describe(site.gpu_models, site.catalog), "the archive provides its newest branch only")
    return replace(
        choice,
        source=source,
        reasons=(*(newest if choice.rolling else choice.reasons), *reasons),
        end_of_support=None if choice.rolling else choice.end_of_support,
        packages=package_names(site, choice, source),
        signed=choice.flavour in names.signed,
        alternatives=alternatives(site, choice, source, provided),
    )


def _no_driver(site: Site, why: str) -> UnsupportedHost:
    rest = setup("--only", "toolkit,runtime")
    way = (f"{site.distro.way}; ", rest, " sets up the rest") if site.distro.way else None
    return UnsupportedHost(
        f"{site.distro.name} gets no driver from gpunode: {why}",
        evidence=f"catalog/distros.yaml ({site.distro.source})",
        remedy=Remedy(RepairAction.UPGRADE, *(way or ("install the driver manually, then ", rest))),
    )


def install_step(site: Site, choice: DriverChoice, source: Source | None) -> Step:
    """The policy and the pin first, since they must be in place before the driver is resolved; then the driver."""
    before = installed_version(site.host)
    pins = policy(site, choice)
    refresh = [site.backend.refresh([source.repository])] if source and source.step is None else []
    if source is None:
        refresh = [site.backend.refresh_all()]
    elsewhere = installed_source(site.host) not in (None, "distro" if choice.source == "distro" else "cuda")
    held = [] if elsewhere else sorted(name for name in site.host.packages.held if is_driver(name))
    runs: list[Run] = [*refresh, *([site.backend.unhold(held)] if held else []), *pin(site, choice)]
    if half := half_driver(site.host):
        runs.append(site.backend.remove([half]))  # so that its script runs from the start
    runs += _install(site, choice, before is not None and not elsewhere)
    runs += _verify(site, choice)
    pins_set = site.spec.hold and not brings_signed(choice)
    title = f"install {', '.join(choice.packages)} {_words(choice)}" + (", and pin the set" if pins_set else "")
    return Step(
        DRIVER_STEP,
        title + lifted_pins(site.host, held),
        _why(before),
        (*pins, *(through_proxy(run, site.spec.proxy) for run in runs)),
        undo=_undo(site, choice, before, held),
        installs="driver",
        replan_after=True,
    )


def _why(before: str | None) -> str:
    if before is None:
        return "no driver is installed"
    cve = known_cve(before)
    return f"{cve.sentence(before)}" if cve else f"{before} is replaced"


def hold_step(site: Site, choice: DriverChoice) -> Step | None:
    """An installed driver that the next upgrade could split into two versions: pin the whole set."""
    lead = lead_package(site.host)
    if not site.spec.hold or lead is None or signed_kind(site.host):
        return None
    version, peers = upstream(site.host.packages.installed[lead].version), driver_set(site.host)
    # Of a driver with a known CVE that nobody asked for by its version, a pin would keep away what mends it.
    if peers <= site.host.packages.held or (known_cve(version) and not site.spec.driver.exact):
        return None
    tools = missing([Wanted(name) for name in site.backend.hold_tools], site.host.packages)
    # A distribution's archive versions its helpers (modprobe, persistenced) on their own, so only the peers are pinned.
    apart = installed_source(site.host) == "distro"
    hold = site.backend.hold(sorted(peers)) if apart else site.backend.same_version(lead, PATTERNS, hold=True)
    return Step(
        HOLD_STEP,
        f"pin the driver's packages at {version}",
        "an unattended upgrade would replace the libraries under a loaded module",
        (
            *([through_proxy(site.backend.install(tools), site.spec.proxy)] if tools else []),
            through_proxy(hold, site.spec.proxy),
        ),
        undo=(site.backend.unhold(sorted(peers - site.host.packages.held)),),
        safe=not tools,
    )


def fabric_step(site: Site, choice: DriverChoice) -> Step | None:
    """A kept driver on an NVSwitch machine without the fabric manager: add it, at exactly the driver's version.

    nvlsm, infiniband-diags and libibumad have versions of their own (gpu-driver-container, ubuntu26.04/install.sh).
    """
    packages = site.distro.packages(choice.source)
    names = packages.names(choice.branch) if packages else None
    there = site.host.packages.installed
    fabric = [name.format(branch=choice.branch) for name in (fabric_names(site, names) if names else ())]
    lacking = [name for name in fabric if name not in there]
    if not lacking or choice.version is None:
        return None
    version = f"{choice.version}{site.backend.vendor_release}"  # a manager of another version does not start
    apart = [name for name in lacking if names and name in names.nvlink5]  # with versions of their own
    same = [name for name in lacking if name not in apart]
    wanted = [Wanted(name, None if name in apart else version) for name in lacking]
    runs = (site.backend.refresh_all(), *installation(site.backend, wanted, MINE))
    said = [f"{', '.join(same)} {choice.version}"] if same else []
    return Step(
        "driver.fabric",
        f"install {', '.join((*said, *apart))}",
        "the fabric of this machine needs them"
        + (", the fabric's own service at exactly the driver's version" if same else ""),
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=(site.backend.remove(lacking),),
        replan_after=True,
    )


def _words(choice: DriverChoice) -> str:
    if choice.version:
        return choice.version
    return "at the archive's newest version" if choice.rolling else f"of branch {choice.branch}"


def _install(site: Site, choice: DriverChoice, replaces: bool) -> tuple[Run, ...]:
    """All packages at once; where the module comes from elsewhere, it goes first and determines the others' version."""
    backend, names = site.backend, names_of(site, choice.source, choice.branch)
    if names.select != "match":
        version = _version(site, choice, names.select, replaces)
        wanted = [_at(version, name, names) for name in choice.packages]
        runs = installation(backend, wanted, MINE, downgrade=replaces)
        return with_module(site, choice, of_one_branch(choice, runs))
    if choice.version is not None:
        raise UnsupportedHost(
            f"an exact driver version cannot be asked for on {site.distro.name}",
            evidence=f"its module {choice.packages[0]} has the distribution's version, and the rest follows it",
            remedy=f"use --driver {choice.branch}",
        )
    lead, *rest = choice.packages
    follow = backend.install([_at("@VERSION@", name, names) for name in rest], downgrade=replaces)
    script = resources.script("packages/at_lead_version")
    argv = ("sh", "-s", "--", lead, *follow.argv)
    description = f"install {' '.join(rest)} at the version of {lead}"
    return (
        *of_one_branch(choice, installation(backend, [Wanted(lead)], MINE, downgrade=replaces)),
        replace(follow, argv=argv, stdin=script, description=description),
    )


def _at(version: str | None, name: str, names: Names) -> Wanted:
    """A package at the driver's version; what manages NVLink 5 switches has versions of its own."""
    return Wanted(name, None if name in names.nvlink5 else version)


def _version(site: Site, choice: DriverChoice, select: str, replaces: bool) -> str | None:
    """The version that is requested with a package's name; None where a pin, a stream or the name itself chooses."""
    if not site.backend.names_version or select in ("name", "newest") or choice.source == "distro":
        return None
    if select == "version":
        branch = site.catalog.branch(choice.branch)
        version = choice.version or (branch.installable if branch else None)
        if version is None:
            raise UnsupportedHost(
                f"{site.distro.name} needs the exact version of branch {choice.branch}, which gpunode does not know",
                evidence="catalog/branches.yaml has no point release for it",
                remedy=f"name it as the repository lists it: --driver {choice.branch}.x.y",
            )
        return version
    # A package that is installed already is downgraded only when its version is named.
    return choice.version or (f"{choice.branch}.*" if replaces else None)


def _verify(site: Site, choice: DriverChoice) -> list[Run]:
    backend, lead = site.backend, choice.packages[0]
    if choice.source == "distro":
        # A distribution's archive versions its helpers (persistenced, settings) on their own.
        pinned = site.spec.hold and not brings_signed(choice)
        return [*_hold_tools(site), backend.hold(choice.packages)] if pinned else []
    if names_of(site, choice.source, choice.branch).select == "match":
        # The module's version contains the kernel's next to the driver's, so a library leads.
        held = [backend.hold([lead])] if site.spec.hold else []
        return [*_hold_tools(site), backend.same_version(choice.packages[1], PATTERNS, hold=site.spec.hold), *held]
    # The lock that chose the branch also applies to packages never installed: exact ones replace it.
    chosen = names_of(site, choice.source, choice.branch).select == "versionlock" and choice.source != "local"
    unpin = [backend.unhold([pattern(choice)])] if chosen else []
    return [*_hold_tools(site), *unpin, backend.same_version(lead, PATTERNS, hold=site.spec.hold)]


def _hold_tools(site: Site) -> list[Run]:
    lacking = missing([Wanted(name) for name in site.backend.hold_tools], site.host.packages)
    return [site.backend.install(lacking)] if lacking and site.spec.hold else []


def _undo(site: Site, choice: DriverChoice, before: str | None, held: Sequence[str]) -> tuple[Action, ...]:
    """Back to no driver where there was none; else the old one is pinned again, or the next upgrade splits it.

    A replaced driver is not restored: its packages may be gone by now.
    """
    back = [through_proxy(run, site.spec.proxy) for run in unpin(site, choice, before)]
    if before is not None:
        return (*back, *pinned_again(site, held))
    fresh = [name for name in choice.packages if name not in site.host.packages.installed]
    return (*back, *([site.backend.remove(fresh)] if fresh else []))
