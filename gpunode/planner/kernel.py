"""The kernel's side: headers, nouveau and nova, loading the module, the driver's services."""

from __future__ import annotations

from gpunode import resources
from gpunode.model.facts import KernelTree
from gpunode.model.plan import Action, Kept, PutFile, Run, Step
from gpunode.packages.base import Wanted, missing
from gpunode.planner.driver import DriverChoice
from gpunode.planner.site import Site, through_proxy

NOUVEAU_FILE = "/etc/modprobe.d/gpunode-nouveau.conf"
LOAD_FILE = "/etc/modules-load.d/gpunode-nvidia.conf"
RIVALS = ("nouveau", "nova_core")  # nova_core drives Turing and newer from Linux 6.15 on
MODULES = ("nvidia", "nvidia-uvm")
PERSISTENCED = "nvidia-persistenced"
FABRICMANAGER = "nvidia-fabricmanager"
INITRAMFS = {
    "update-initramfs": ("update-initramfs", "-u", "-k", "all"),
    "dracut": ("dracut", "--force", "--regenerate-all"),
    "mkinitcpio": ("mkinitcpio", "-P"),
}


def headers_step(site: Site) -> Step | Kept:
    """Headers for the running kernel and for the one that boots next; on Debian and Ubuntu also what follows it."""
    kernel = site.host.kernel
    releases = tuple(dict.fromkeys(r for r in (kernel.release, kernel.next_boot) if r))
    bare = [r for r in releases if not _has_headers(site, r)]
    follow = follower(site)
    wanted = [Wanted(p.format(release=r)) for r in bare for p in site.distro.headers]
    wanted += [Wanted(follow)] if follow else []
    lacking = tuple(dict.fromkeys(missing(wanted, site.host.packages)))
    if not lacking:
        return Kept("kernel.headers", f"headers for {' and '.join(releases)} are installed")
    names = ", ".join(w.name for w in lacking)
    return Step(
        "kernel.headers",
        f"install {names}" + (" (follows the kernel)" if follow and Wanted(follow) in lacking else ""),
        "DKMS builds the module against them; a kernel without headers boots without a driver",
        tuple(through_proxy(r, site.spec.proxy) for r in (site.backend.refresh_all(), site.backend.install(lacking))),
    )


def follower(site: Site) -> str | None:
    """The headers meta-package that goes with the installed kernel meta-package: linux-image-generic, -cloud-amd64, ...

    None where no kernel meta-package is installed: then nothing follows.
    """
    if not site.distro.follow:
        return None
    images = (
        n.removeprefix("linux-image-") for n in sorted(site.host.packages.installed) if n.startswith("linux-image-")
    )
    tails = [t for t in images if not t[:1].isdigit() and not t.startswith(("unsigned-", "extra-"))]
    return f"linux-headers-{tails[0]}" if tails else None


def rivals_step(site: Site) -> Step | Kept:
    """Keep nouveau and nova_core away from the cards, in the initramfs too."""
    if set(RIVALS) <= site.host.kernel.blacklisted:
        return Kept("kernel.nouveau", "nouveau and nova_core are kept away")
    text = resources.render("modprobe/nouveau.conf.j2", modules=RIVALS)
    argv = INITRAMFS.get(site.host.kernel.initramfs_tool or "")
    actions: tuple[Action, ...] = (
        PutFile(NOUVEAU_FILE, text, expect_sha256=site.host.file(NOUVEAU_FILE).sha256, any_before=True),
    )
    rebuild = (Run(argv, timeout_s=900, detach=True),) if argv else ()
    return Step(
        "kernel.nouveau",
        "keep nouveau and nova away"
        + (", rebuild the initramfs" if argv else " (no initramfs tool here, so none to rebuild)"),
        "a card that nouveau or nova_core holds cannot be taken by NVIDIA's driver",
        actions + rebuild,
        undo=rebuild,
        diff="\n".join(f"+{line}" for line in text.splitlines()),
    )


def holders(site: Site) -> tuple[str, ...]:
    """ "nouveau holds 0000:41:00.0" for each card another driver has; vfio-pci is somebody's decision and stays."""
    return tuple(f"{g.driver} holds {g.address}" for g in site.host.gpus if g.driver in RIVALS)


def reboot_reason(site: Site, driver: DriverChoice) -> str | None:
    """Why the driver works only after a reboot (or a visit to the console), None when loading it is enough."""
    loaded, held = site.host.driver.loaded, holders(site)
    if held:
        return f"{held[0]}{f' and {len(held) - 1} more' if len(held) > 1 else ''}; only a reboot releases it"
    if loaded and not driver.kept:
        return f"driver {loaded} is loaded, {driver.version or f'branch {driver.branch}'} is installed"
    if loaded and driver.version and loaded != driver.version:
        return f"driver {loaded} is loaded, {driver.version} is installed"
    if site.host.security.mok_pending:
        return "a machine owner key waits to be enrolled at the console (MokManager)"
    if not loaded and needs_enrolment(site, driver):
        return (
            "Secure Boot is on: enrol the key that DKMS signs with (mokutil --import, then reboot and confirm in "
            "MokManager at the console)"
        )
    return None


def needs_enrolment(site: Site, driver: DriverChoice) -> bool:
    """Secure Boot refuses a DKMS module until its key is enrolled; a distribution's prebuilt modules are signed."""
    archive = site.distro.archive
    signed = driver.source == "distro" and archive is not None and archive.signed
    return bool(site.host.security.secure_boot) and not signed


def load_step(site: Site, driver: DriverChoice, *, now: bool) -> Step | Kept:
    """Load nvidia and nvidia-uvm at every boot, and `now` where nothing stands in the way."""
    text = resources.render("modprobe/modules-load.conf.j2", modules=MODULES)
    file = site.host.file(LOAD_FILE)
    actions: list[Action] = []
    # A recording from before the probe read this file says nothing about it; a loaded driver is then left alone.
    known = LOAD_FILE in site.host.files or not site.host.driver.loaded
    if known and file.text != text:
        actions.append(PutFile(LOAD_FILE, text, expect_sha256=file.sha256, any_before=True))
    wanted = {"nvidia", "nvidia_uvm"}
    if now and not wanted <= site.host.kernel.modules:
        actions += [Run(("modprobe", module), timeout_s=120) for module in MODULES]
    if not actions:
        loaded = site.host.driver.loaded
        text = f"{loaded} is loaded, and at every boot" if loaded else "nvidia and nvidia-uvm load at every boot"
        return Kept("driver.load", text)
    title = "load nvidia and nvidia-uvm, now and at every boot" if now else "load nvidia and nvidia-uvm at every boot"
    return Step("driver.load", title, "containers need both before the first one starts", tuple(actions))


def build_step(site: Site, driver: DriverChoice) -> Step | None:
    """The packages are in, but this kernel has no module: headers came later, or a build was cut off."""
    if not driver.kept or site.host.driver.installed is not None or not driver.packages:
        return None
    release = site.host.kernel.release
    return Step(
        "driver.build",
        f"build the module for {release} with dkms",
        f"{driver.packages[0]} is installed, but /lib/modules/{release} has no nvidia module",
        (Run(("dkms", "autoinstall", "-k", release), timeout_s=3600, detach=True),),
    )


def services_step(site: Site, *, now: bool) -> Step | Kept | None:
    """persistenced everywhere, fabricmanager where NVSwitches are; None on hosts without systemd."""
    if not site.systemd:
        return None
    units = [PERSISTENCED] + ([FABRICMANAGER] if site.switches else [])
    lacking = [unit for unit in units if not _runs(site, unit, now=now)]
    if not lacking:
        does = ("run" if len(units) > 1 else "runs") if now else ("are enabled" if len(units) > 1 else "is enabled")
        return Kept("driver.services", f"{' and '.join(units)} {does}")
    switch = ("--now",) if now else ()
    return Step(
        "driver.services",
        f"enable{' and start' if now else ''} {' and '.join(lacking)}",
        "persistenced keeps the driver's state between containers"
        + ("; NVSwitch links come up with the fabric manager only" if FABRICMANAGER in lacking else ""),
        tuple(Run(("systemctl", "enable", *switch, f"{unit}.service"), timeout_s=120) for unit in lacking),
    )


def _runs(site: Site, unit: str, *, now: bool) -> bool:
    service = site.service(unit)
    return service.enabled in ("enabled", "static", "alias") and (service.active == "active" or not now)


def _has_headers(site: Site, release: str) -> bool:
    tree: KernelTree | None = next((t for t in site.host.kernel.trees if t.release == release), None)
    return tree is not None and tree.headers
