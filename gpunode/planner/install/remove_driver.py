"""--driver none: the driver's packages are removed, with their pins and what gpunode added to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode.advice import listing
from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, RemoveFile, Run
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_users import gpu_users
from gpunode.model.installed import PINNING, installed_source, is_driver, upstream
from gpunode.model.plan import REMOVE_STEP, REPLACE_STEP, ForUndo, Kept, Step
from gpunode.model.spec import Spec, ToolkitConfig
from gpunode.planner.driver.foreign import foreign_origin
from gpunode.planner.driver.installed import lifted_pins
from gpunode.planner.driver.services import CDMM_FILE, CHAR_RULE
from gpunode.planner.driver.source import old_pins, policy_files, source_title
from gpunode.planner.install.branch_pin import pinned_again
from gpunode.planner.install.driver import MINE
from gpunode.planner.kernel.initramfs import DRACUT_FILE, rebuild, rebuild_if_it_can
from gpunode.planner.kernel.setup import LOAD_FILE, NOUVEAU_FILE
from gpunode.planner.mig import LAYOUT, SCRIPT, UNIT, UNIT_PATH
from gpunode.planner.site import Site, through_proxy
from gpunode.remedy import AGAIN, Remedy, RepairAction

Outcome = Step | Kept
IN_INITRAMFS = (NOUVEAU_FILE, DRACUT_FILE)
# What may go with the driver's packages; both belong to it in Debian's archive, and their names do not say so.
GO_ALONG = (*MINE, "libnvcuvid1*", "libnvoptix1*")
FOREIGN = 65  # simulate.sh's
OWN = (CDMM_FILE, CHAR_RULE, UNIT_PATH, SCRIPT, LAYOUT)


def driver_packages(host: HostFacts) -> tuple[str, ...]:
    """Installed packages that are part of a driver: named like one and versioned like one (595.91.07)."""
    return tuple(
        sorted(
            name
            for name, package in host.packages.installed.items()
            if name.startswith(PINNING) or (is_driver(name) and upstream(package.version))
        )
    )


def own_files(host: HostFacts) -> tuple[str, ...]:
    """Files about the driver that gpunode alone owns, and the pins that removed packages leave, as far as present."""
    listed = {f.path for f in host.packages.sources}
    ours = (LOAD_FILE, *IN_INITRAMFS, *policy_files(), *OWN)
    # One that cannot be read as a file is a link to /dev/null: whoever switched it off keeps that.
    own = tuple(p for p in ours if host.file(p).text is not None or p in listed)
    return own + tuple(f.path for f in old_pins(host, None))


def parts_without_driver(host: HostFacts, spec: Spec, catalog: Catalog) -> tuple[str, ...]:
    """The parts of setup that remain when the driver is removed: without one, engines have no GPUs to offer.

    What is named in the spec is done all the same, and somebody else's driver is not removed.
    """
    if foreign_origin(host, catalog) is not None:
        return spec.only
    unnamed = {
        "toolkit": spec.toolkit.kind == "auto" and spec.toolkit_config == ToolkitConfig(),
        "runtime": spec.runtimes is None,
    }
    return tuple(part for part in spec.only if not unnamed.get(part))


def uninstall_outcomes(site: Site) -> tuple[Outcome, ...]:
    """Raises UnsupportedHost while programs use the GPUs."""
    host = site.host
    origin = foreign_origin(host, site.catalog)
    if origin is not None:
        return (
            Kept(
                REMOVE_STEP,
                f"{origin.summary} ({origin.evidence}): not managed by gpunode, not changed; {origin.hand_over}",
            ),
        )
    names, files = driver_packages(host), own_files(host)
    others = _left_alone(site)
    if not names and not files:
        return (Kept(REMOVE_STEP, "no driver is installed"), *others)
    _refuse_in_use(site)
    held = sorted(host.packages.held & set(names))
    actions: list[Action] = [*_asked(site, names), *([site.backend.unhold(held)] if held else [])]
    if UNIT_PATH in files and site.systemd:
        actions.append(Run(("systemctl", "disable", UNIT), ok_codes=(0, 1)))
    actions += [through_proxy(site.backend.remove(names), site.spec.proxy)] if names else []
    actions += [RemoveFile(path) for path in files]
    again = rebuild(host) if set(IN_INITRAMFS) & set(files) else ()
    actions += again
    shown = listing(names)
    title = f"remove {shown}" if names else "remove what gpunode added to the driver"
    return (
        Step(
            REMOVE_STEP,
            title + lifted_pins(host, held),
            "--driver none",
            tuple(actions),
            undo=(*rebuild_if_it_can(again), *pinned_again(site, held)),
            for_undo=ForUndo(initramfs=bool(again)),
        ),
        Kept(
            "repo.cuda",
            "package repositories (gpunode undo --packages removes those it added)",
            repository="cuda",
        ),
        *others,
    )


def _left_alone(site: Site) -> tuple[Kept, ...]:
    left = set(site.spec.only) - set(parts_without_driver(site.host, site.spec, site.catalog))
    words = "container toolkit and engines: without a driver they have no GPUs to offer"
    return (Kept("toolkit.install", words),) if left else ()


def replaced_step(site: Site, choice: DriverChoice) -> Step | None:
    """The other source's set goes first: the same names at lower versions are no upgrade to any resolver."""
    there = installed_source(site.host)
    if there is None or there == ("distro" if choice.source == "distro" else "cuda"):
        return None
    names = driver_packages(site.host)
    held = sorted(site.host.packages.held & set(names))
    shown = listing(names)
    return Step(
        REPLACE_STEP,
        f"remove {shown}{lifted_pins(site.host, held)}",
        f"they come from {source_title(site, there)}, and a host has one source",
        (
            *_asked(site, names),
            *([site.backend.unhold(held)] if held else []),
            through_proxy(site.backend.remove(names), site.spec.proxy),
        ),
        undo=pinned_again(site, held),
    )


def _asked(site: Site, names: Sequence[str]) -> tuple[Run, ...]:
    """The resolver is asked first, as before an install: what others installed does not go with the driver unasked."""
    ask = site.backend.simulate_removal(names, GO_ALONG) if names else None
    if ask is None:
        return ()
    remove = site.backend.words("remove")
    ways = f"`{remove}` those packages first if they may go, or keep the driver (--only toolkit,runtime)"
    return (replace(ask, remedies=((FOREIGN, ways),)),)


def reboot_after(host: HostFacts) -> str | None:
    """Why the removed driver is gone only after a reboot."""
    if not host.driver.loaded:
        return None
    return f"driver {host.driver.loaded} is loaded, and leaves the kernel with a reboot"


def _refuse_in_use(site: Site) -> None:
    working = gpu_users(site.host)
    if working and not site.spec.allow_gpu_in_use:
        raise UnsupportedHost(
            f"{site.host.hostname}: the GPUs are in use by {', '.join(working[:4])}",
            evidence="these processes hold /dev/nvidia*; nothing was touched",
            remedy=Remedy(
                RepairAction.WAIT, "stop them (drain the node) and run ", AGAIN, " again, or add --allow-gpu-in-use"
            ),
        )
