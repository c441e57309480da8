"""The order of everything: what an engineer would type, top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import HostFacts
from gpunode.model.plan import DRIVER_STEP, Kept, Plan, Step
from gpunode.model.spec import PARTS, Spec
from gpunode.planner.driver.cve import why_kept
from gpunode.planner.driver.explain import explained
from gpunode.planner.driver.platform import platform_driver
from gpunode.planner.driver.reload import refuse_in_use, swap_step, will_swap
from gpunode.planner.driver.services import char_links_step, coherent_step, services_step
from gpunode.planner.driver.source import policy_step
from gpunode.planner.engines.after_reboot import gone_after_reboot
from gpunode.planner.engines.cdi import cdi_outcomes
from gpunode.planner.engines.kubelet.daemon import is_inside_an_engine
from gpunode.planner.engines.kubelet.dra import dra_outcomes
from gpunode.planner.engines.kubelet.mode import refuse_mode, refuse_old_driver
from gpunode.planner.engines.kubelet.steps import kubelet_outcomes
from gpunode.planner.engines.steps import runtime_steps
from gpunode.planner.install.cuda import cuda_outcomes
from gpunode.planner.install.driver import driver_choice, fabric_step, hold_step, install_step
from gpunode.planner.install.image_based import image_outcomes
from gpunode.planner.install.image_build import refuse_no_kernel, without_systemd
from gpunode.planner.install.operator import parts_beside_operator
from gpunode.planner.install.own_systems import refuse_own_system
from gpunode.planner.install.prerequisites import before_step, repair_step
from gpunode.planner.install.remove_driver import parts_without_driver, reboot_after, replaced_step, uninstall_outcomes
from gpunode.planner.install.toolkit import config_outcome, toolkit_steps
from gpunode.planner.kernel.fit import misfit_kept, refuse_misfit
from gpunode.planner.kernel.modules import build_step
from gpunode.planner.kernel.secureboot import console_words, enrol_step
from gpunode.planner.kernel.setup import extra_modules_step, headers_step, load_step, reboot_reason, rivals_step
from gpunode.planner.kernel.signed_modules import modules_step, unhold_step
from gpunode.planner.kernel.toolset import toolset_step
from gpunode.planner.mig import mig_outcome, reset_reason
from gpunode.planner.repos.apt_components import components_step
from gpunode.planner.repos.cleanup import lists_step
from gpunode.planner.repos.repository import Source, claims, driver_source, tools_step
from gpunode.planner.resume import leftover_step
from gpunode.planner.site import Site, survey
from gpunode.planner.summary import host_summary, with_diff
from gpunode.remedy import Remedy, RepairAction, gpunode, setup
from gpunode.values import dataclass

Outcome = Step | Kept


@dataclass(frozen=True)
class _Packages:
    """What driver, CUDA and toolkit come to."""

    outcomes: tuple[Outcome, ...] = ()
    choice: DriverChoice | None = None  # None where the spec leaves the driver alone, or wants none
    reboot: str | None = None
    console: str | None = None


def make_plan(host: HostFacts, spec: Spec, catalog: Catalog, done: frozenset[str] = frozenset()) -> Plan:
    """The difference between this host and what is wanted; `done`: ids of steps that the same run has done already.

    Raises UnsupportedHost when it cannot be reached from here, UsageError for a request that contradicts itself, and
    ConfigFileError for an engine's config that cannot be edited safely. Nothing on the host was touched.
    """
    refuse_own_system(host, catalog)
    refuse_mode(host, spec)
    removing = "driver" in spec.only and spec.driver.kind == "none" and catalog.distro(host.os) is not None
    only = parts_without_driver(host, spec, catalog) if removing else spec.only
    only, theirs = parts_beside_operator(host, spec, only)
    packages = _packages(host, spec, catalog, only, done, removing=removing)
    refuse_old_driver(host, spec, catalog, packages.choice)
    settings = replace(spec, only=only) if theirs else spec
    kubelet = kubelet_outcomes(host, spec) if "kubernetes" in only else []
    before, after = (kubelet, []) if is_inside_an_engine(host) else ([], kubelet)
    leftover = leftover_step(host)
    outcomes = [
        *([leftover] if leftover else []),
        *theirs,
        *packages.outcomes,
        *before,
        *_settings(host, settings, only, packages.outcomes),
        *after,
    ]
    outcomes += dra_outcomes(host, spec, catalog) if "kubernetes" in only else ()
    outcomes += gone_after_reboot(host) if packages.reboot else ()
    steps = tuple(with_diff(host, o) for o in outcomes if isinstance(o, Step)) or _close_journal(host, spec)
    if host.init == "chroot":
        steps = tuple(map(without_systemd, steps))
    return Plan(
        target=host.target,
        spec=spec,
        facts_sha256=host.stream_sha256,
        hostname=host.hostname,
        about=host_summary(host, catalog),
        driver=packages.choice,
        steps=steps,
        kept=tuple(o for o in outcomes if isinstance(o, Kept)),
        reboot=packages.reboot,
        console=packages.console if packages.reboot else None,
        replan_after=any(step.replan_after for step in steps),
    )


def _packages(
    host: HostFacts, spec: Spec, catalog: Catalog, only: Sequence[str], done: frozenset[str], *, removing: bool
) -> _Packages:
    """What the package manager is asked for, and what stands around the driver."""
    driver = "driver" in spec.only and spec.driver.kind != "none"
    toolkit = "toolkit" in only and spec.toolkit.kind != "none"
    if not (driver or toolkit or removing):
        return _Packages()
    if (driver or removing) and (left := platform_driver(host, spec)):
        if driver and host.platform == "container":
            refuse_no_gpu(host, spec)
        rest = replace(spec, only=tuple(part for part in only if part != "driver"))
        beside = _packages(host, rest, catalog, rest.only, done, removing=False)
        return replace(beside, outcomes=(left, *beside.outcomes))
    if driver or removing:
        _refuse_misread(host, spec)
    if host.image_based:
        if driver:
            refuse_no_gpu(host, spec)
        kept = image_outcomes(host, spec, driver=driver, toolkit=toolkit, removing=removing)
        return _with_mig(_Packages(kept), survey(host, spec, catalog, done)) if driver and spec.mig else _Packages(kept)
    site = survey(host, spec, catalog, done)
    choice = explained(site, _choice(site)) if driver else None
    parts = _driver_outcomes(site, choice) if choice else [*uninstall_outcomes(site)] if removing else []
    parts += cuda_outcomes(site, choice) if driver else ()
    tools = toolkit_steps(site) if toolkit else ()
    # One repository may serve driver, CUDA and toolkit: it is set up once.
    outcomes = tuple(dict.fromkeys([*_prepare(site, [*parts, *tools]), *parts, *tools]))
    if host.init == "chroot":  # the image's first boot is still to come
        return _Packages(outcomes, choice)
    if choice is None:
        return _Packages(outcomes, reboot=reboot_after(host) if removing else None)
    reboot = reboot_reason(site, choice) or reset_reason(site)
    return _Packages(outcomes, choice, reboot, console_words(site, choice))


def _with_mig(packages: _Packages, site: Site) -> _Packages:
    """The same, and the MIG layout: it needs no other driver than the image's."""
    found = mig_outcome(site)
    return replace(packages, outcomes=(*packages.outcomes, *([found] if found else [])), reboot=reset_reason(site))


def _choice(site: Site) -> DriverChoice:
    refuse_no_gpu(site.host, site.spec)
    refuse_no_kernel(site.host)
    choice = driver_choice(site)
    refuse_misfit(site, choice)
    refuse_in_use(site, choice)
    return choice


def _settings(host: HostFacts, spec: Spec, only: Sequence[str], before: Sequence[Outcome]) -> list[Outcome]:
    """The toolkit's own settings, CDI specifications and the engines, after the packages (`before`)."""
    steps = [one for one in before if isinstance(one, Step)]
    installing = any(step.installs == "toolkit" for step in steps)
    settings = config_outcome(host, spec, "toolkit" in only, installing=installing)
    found = [settings] if settings else []
    found += cdi_outcomes(host, spec, pending=any(step.replan_after for step in steps))
    if "runtime" in only and spec.runtimes != ():
        engines, kept = runtime_steps(host, spec, coming=installing)
        found += [*engines, *kept]
    return found


def _refuse_misread(host: HostFacts, spec: Spec) -> None:
    """Raises UnsupportedHost where what the host says of its driver or GPUs was not understood.

    What is not known is not absent: a driver that works would be replaced. An image that is being built has no GPUs.
    """
    unknown = {"driver": "which driver is here", "pci": "which GPUs are on the PCI bus"}
    section = next((name for name in unknown if name in host.misread), None)
    if section is None or (section == "pci" and spec.allow_no_gpu):
        return
    raise UnsupportedHost(
        f"{host.hostname}: {unknown[section]} is not known",
        evidence=f"{section}: {host.misread[section]}",
        remedy=Remedy(RepairAction.SUPPORT, "try again; ", gpunode("detect"), " shows what was understood"),
    )


def refuse_no_gpu(host: HostFacts, spec: Spec) -> None:
    """Raises UnsupportedHost on a host without a GPU, unless an image is being built (--allow-no-gpu)."""
    if host.own_gpus or spec.allow_no_gpu:
        return
    if host.gpus:
        raise UnsupportedHost(
            f"{host.hostname}: every GPU is bound to vfio-pci (passthrough)",
            evidence=f"driver vfio-pci: {', '.join(gpu.address for gpu in host.gpus)}",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                "return one to this host (driverctl unset-override ADDRESS, or the "
                "vfio-pci ids on the kernel's command line), or ",
                setup("--only", "toolkit,runtime"),
            ),
        )
    if host.init == "chroot":
        raise UnsupportedHost(
            f"{host.hostname}: an image is being built here, or this is a container without GPUs",
            evidence="the root of process 1 is another one, or it is no init and has a PID namespace of its own; "
            "kernel and GPUs are those of the machine around it, and are not counted",
            remedy="--allow-no-gpu builds an image for the kernels in its /lib/modules (--driver and --flavour say "
            "what its GPUs need); for the machine around it, run gpunode there",
        )
    seen = ", ".join(f"{d.address} [{d.class_code}] {d.vendor}:{d.device}" for d in host.pci[:4])
    raise UnsupportedHost(
        f"{host.hostname}: no NVIDIA GPU on the PCI bus",
        evidence=f"of NVIDIA's PCI functions with class 0300 or 0302 there is none; others: {seen or 'none'}",
        remedy="check the slot and the virtual machine's passthrough; --allow-no-gpu builds an image; no GPU required",
    )


def _close_journal(host: HostFacts, spec: Spec) -> tuple[Step, ...]:
    """With nothing else to do, a step that a killed run left open is right by now, and its backups are history.

    Left open, a failure of the same step months later would restore those old bytes. A plan with steps closes them
    on its way (apply/execute.py); only a whole spec shows that nothing is left to do.
    """
    if not host.journal.open_steps or spec.only != PARTS:
        return ()
    names = ", ".join(host.journal.open_steps)
    why = "an interrupted run never recorded their end; the facts show that nothing of them is left to do"
    return (Step("journal.close", f"close in gpunode's own journal: {names}", why, ()),)


def _prepare(site: Site, planned: Sequence[Outcome]) -> list[Outcome]:
    """What must stand before the first repository is touched; nothing when no package is going to change."""
    steps = [o for o in planned if isinstance(o, Step)]
    vendor = any(step.repository == "cuda" or step.installs in ("driver", "cuda") for step in steps)
    changes_repositories = any(step.changes_repositories for step in steps)
    changing = changes_repositories or any(step.installs for step in steps)
    named = {one.repository for one in planned if one.repository}
    # Two lists of one repository stop apt altogether, so they are put right before anything is asked of it.
    first: list[Step | None] = [
        lists_step(site.host, site.distro, claims(site, named), vendor=vendor) if changing else None,
        repair_step(site),
    ]
    before = before_step(site) if any(step.installs == "driver" for step in steps) else None
    if before or changes_repositories:
        first.append(tools_step(site))
    first.append(before)
    return [step for step in first if step is not None]


def _driver_outcomes(site: Site, choice: DriverChoice) -> list[Outcome]:
    found: list[Outcome | None] = []
    dkms, against = not choice.signed, why_kept(site, choice)
    if choice.foreign:
        said = f"driver {choice.version} is not changed: {choice.foreign.sentence}{against}"
        partition = mig_outcome(site)  # the layout changes nothing of the driver
        return [Kept(DRIVER_STEP, said, beware=bool(against)), *([partition] if partition else [])]
    if choice.kept:
        said = f"driver {choice.version} with {choice.flavour} kernel modules{against}"
        found.append(Kept(DRIVER_STEP, said, beware=bool(against)))
        found += [headers_step(site), toolset_step(site)] if dkms and choice.packages else []
        found += [
            policy_step(site, choice),
            build_step(site, choice),
            misfit_kept(site, choice),
            unhold_step(site),
            modules_step(site, choice),
            enrol_step(site, choice),
            fabric_step(site, choice),
            hold_step(site, choice),
        ]
    else:
        found.append(components_step(site, choice))
        source: Source | None = driver_source(site, choice.source)
        found += [source.step or source.kept] if source else []
        found += [headers_step(site), toolset_step(site)] if dkms else []
        found += [replaced_step(site, choice), install_step(site, choice, source)]
    # In a chroot modprobe would reach the kernel of the machine that the image is made on; without a GPU it fails.
    later = will_swap(site, choice)
    # Signed modules may be for a newer kernel than the one that runs: the next probe shows it.
    unsure = later is not None or (choice.signed and not choice.kept)
    now = reboot_reason(site, choice) is None and site.host.init != "chroot" and bool(site.gpu_models) and not unsure
    found += [
        rivals_step(site),
        coherent_step(site, choice),
        swap_step(site, choice) or later,
        extra_modules_step(site),
        load_step(site, choice, now=now),
        services_step(site, choice, now=now),
        mig_outcome(site),
        char_links_step(site),
    ]
    return [outcome for outcome in found if outcome is not None]
