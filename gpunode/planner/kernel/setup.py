"""The kernel's side: headers, nouveau and nova, loading the module, the driver's services."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.advice import listing
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import KernelTree
from gpunode.model.kept_out import LIFTS_BLOCK, kept_from_loading
from gpunode.model.plan import (
    HEADERS_STEP,
    LOAD_STEP,
    NOUVEAU_STEP,
    ForUndo,
    Kept,
    Step,
)
from gpunode.packages.base import Wanted, download_and_install, missing
from gpunode.planner.driver.reload import can_swap, stale, will_swap
from gpunode.planner.driver.services import modules
from gpunode.planner.kernel.initramfs import DRACUT_FILE, dracut_file, outdated, rebuild, rebuild_if_it_can
from gpunode.planner.kernel.modules import elsewhere, kernels
from gpunode.planner.kernel.secureboot import needs_enrolment
from gpunode.planner.kernel_packages import kernel_meta
from gpunode.planner.site import Site, through_proxy

NOUVEAU_FILE = "/etc/modprobe.d/gpunode-nouveau.conf"
LOAD_FILE = "/etc/modules-load.d/gpunode-nvidia.conf"
EXTRA_MODULES_STEP = "kernel.extra-modules"
RIVALS = ("nouveau", "nova_core")  # nova_core drives Turing and newer from Linux 6.15 on


def headers_step(site: Site) -> Step | Kept:
    """Headers for the kernels that may boot; on Debian and Ubuntu also what follows them."""
    releases = kernels(site.host)
    bare = [r for r in releases if not _has_headers(site, r)]
    follow = follower(site)
    wanted = [Wanted(name) for r in bare for name in site.distro.headers_of(r)]
    wanted += [Wanted(follow)] if follow else []
    wanted += [Wanted(compiler)] if (compiler := _compiler(site)) else []
    lacking = tuple(dict.fromkeys(missing(wanted, site.host.packages)))
    if not lacking:
        return Kept(HEADERS_STEP, f"headers for {' and '.join(releases) or 'no kernel'} are installed")
    names = ", ".join(w.name for w in lacking)
    return Step(
        HEADERS_STEP,
        f"install {names}" + (" (follows the kernel)" if follow and Wanted(follow) in lacking else ""),
        "DKMS builds the module against them; a kernel without headers boots without a driver",
        tuple(
            through_proxy(r, site.spec.proxy)
            for r in (site.backend.refresh_all(), *download_and_install(site.backend, lacking))
        ),
    )


def extra_modules_step(site: Site) -> Step | None:
    """The package of the running kernel that has ib_umad, where its own has not.

    linux-image-generic depends on it, linux-image-virtual and the kernels of clouds do not.
    """
    name = site.distro.extra_modules
    if name is None or site.fabric != "nvlink5" or site.host.driver.umad is not False:
        return None
    lacking = missing([Wanted(name.format(release=site.host.kernel.release))], site.host.packages)
    if not lacking:
        return None
    return Step(
        EXTRA_MODULES_STEP,
        f"install {lacking[0].name}",
        f"{site.host.kernel.release} has no module ib_umad, through which nvlsm manages the NVLink switches",
        tuple(
            through_proxy(run, site.spec.proxy)
            for run in (site.backend.refresh_all(), *download_and_install(site.backend, lacking))
        ),
    )


def _compiler(site: Site) -> str | None:
    """The package of the gcc that built the running kernel, where the default one is another.

    Ubuntu 22.04's 6.8 kernel is built with gcc 12 and its default is 11: DKMS then fails on options that 11 does not
    know (-ftrivial-auto-var-init=zero).
    """
    major, default = site.host.kernel.compiler, site.host.packages.installed.get("gcc")
    if site.distro.compiler is None or major is None or site.host.init == "chroot":
        return None
    same = default is not None and default.version.split(":")[-1].split(".")[0] == str(major)
    return None if same else site.distro.compiler.format(major=major)


def follower(site: Site) -> str | None:
    """The headers meta-package that goes with the installed kernel meta-package: linux-image-generic, -cloud-amd64, ...

    None where no kernel meta-package is installed: then nothing follows.
    """
    if other := site.distro.kernel(site.host.kernel.release):
        image, headers = other.follow or (None, None)
        return headers if image in site.host.packages.installed else None
    meta = kernel_meta(site.host) if site.distro.follow else None
    return f"linux-headers-{meta}" if meta else None


def rivals_step(site: Site) -> Step | Kept:
    """Blacklist nouveau and nova_core, in the initramfs too, and keep nvidia's modules out of that."""
    files = _rival_files(site)
    old = outdated(site.host)
    if not files and old is None:
        return Kept(NOUVEAU_STEP, "nouveau and nova_core are blacklisted")
    again = rebuild(site.host)
    return Step(
        NOUVEAU_STEP,
        _title(files, again),
        _why(files) if files else old or "",
        (*files, *again),
        undo=rebuild_if_it_can(again),
        for_undo=ForUndo(initramfs=True),
        safe=True,
    )


def _rival_files(site: Site) -> tuple[PutFile, ...]:
    before = site.host.file(NOUVEAU_FILE).sha256
    text = resources.render("modprobe/nouveau.conf.j2", modules=RIVALS)
    blacklisted = set(RIVALS) <= site.host.kernel.blacklisted
    blacklist = () if blacklisted else (PutFile(NOUVEAU_FILE, text, expect_sha256=before, any_before=True),)
    omitted = dracut_file(site.host)
    return (*blacklist, omitted) if omitted else blacklist


def _title(files: Sequence[PutFile], again: Sequence[Run]) -> str:
    paths = [file.path for file in files]
    parts = ["blacklist nouveau and nova_core"] if NOUVEAU_FILE in paths else []
    if DRACUT_FILE in paths:
        parts.append(f"omit {'them' if parts else 'nouveau, nova_core'} and nvidia from the initramfs")
    if not again:
        return f"{', '.join(parts)} (no initramfs tool here, so none to rebuild)"
    return ", ".join((*parts, "rebuild it" if DRACUT_FILE in paths else "rebuild the initramfs"))


def _why(files: Sequence[PutFile]) -> str:
    why = "a GPU that nouveau or nova_core holds cannot be taken by NVIDIA's driver"
    if files[-1].path != DRACUT_FILE:
        return why
    return f"{why}; a module of nvidia in the initramfs would be loaded even after another one is installed"


def holders(site: Site) -> tuple[str, ...]:
    """ "nouveau holds 0000:41:00.0" for each GPU another driver has; vfio-pci (passthrough) is not changed."""
    return tuple(f"{g.driver} holds {g.address}" for g in site.host.gpus if g.driver in RIVALS)


def reboot_reason(site: Site, driver: DriverChoice) -> str | None:
    """Why the driver works only after a reboot (or a visit to the console), None when loading it is enough."""
    held, old = holders(site), stale(site.host, driver)
    if held:
        return f"{listing(held, 1)}; only a reboot releases it"
    if old and not can_swap(site, driver) and will_swap(site, driver) is None:
        return old
    if driver.kept and driver.signed and (release := elsewhere(site.host)):
        return f"the signed module is for {release}, which boots next, and {site.host.kernel.release} runs"
    if site.host.security.mok_pending:
        return "a machine owner key waits to be enrolled at the console (MokManager)"
    if needs_enrolment(site, driver):
        return "Secure Boot is on: the key that DKMS signs with must be enrolled at the console (MokManager)"
    return None


def load_step(site: Site, driver: DriverChoice, *, now: bool) -> Step | Kept:
    """Load nvidia and nvidia-uvm at every boot, and `now` where nothing stands in the way."""
    _refuse_kept_out(site)
    text = resources.render("modprobe/modules-load.conf.j2", modules=modules(site))
    file = site.host.file(LOAD_FILE)
    actions: list[Action] = []
    # A recording from before the probe read this file says nothing about it; a loaded driver is then not changed.
    known = LOAD_FILE in site.host.files or not site.host.driver.loaded
    if known and file.text != text:
        actions.append(PutFile(LOAD_FILE, text, expect_sha256=file.sha256, any_before=True))
    wanted = {module.replace("-", "_") for module in modules(site)}
    if now and not wanted <= site.host.kernel.modules:
        actions += [Run(("modprobe", module), timeout_s=120) for module in modules(site)]
    *most, last = modules(site)
    names = f"{', '.join(most)} and {last}"
    if not actions:
        loaded = site.host.driver.loaded
        current = loaded is not None and stale(site.host, driver) is None
        return Kept(LOAD_STEP, f"{loaded} is loaded, and at every boot" if current else f"{names} load at every boot")
    title = f"load {names}, now and at every boot" if now else f"load {names} at every boot"
    return Step(LOAD_STEP, title, "containers need both before the first one starts", tuple(actions), safe=True)


def _refuse_kept_out(site: Site) -> None:
    """Raises UnsupportedHost where a setting that is not gpunode's keeps what is to be loaded from loading."""
    names = kept_from_loading(site.host)
    if names:
        raise UnsupportedHost(
            f"{site.host.hostname}: modprobe.d or the kernel command line keeps {listing(sorted(names))} from loading",
            evidence="install with /bin/false, alias with off, or module_blacklist=; nothing was touched",
            remedy=LIFTS_BLOCK,
        )


def _has_headers(site: Site, release: str) -> bool:
    tree: KernelTree | None = next((t for t in site.host.kernel.trees if t.release == release), None)
    return tree is not None and tree.headers
