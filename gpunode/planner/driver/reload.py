"""From one loaded driver to another: without a reboot where no process uses the GPUs, never while one does."""

from __future__ import annotations

from gpunode import resources
from gpunode.advice import listing
from gpunode.errors import HostBusy
from gpunode.model.action import Run
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_users import gpu_users
from gpunode.model.plan import SWAP_STEP, Kept, Step
from gpunode.planner.site import Site
from gpunode.remedy import AGAIN, Remedy, RepairAction

# The driver's own services hold /dev/nvidia* open and are stopped and started around the swap, in this order.
SERVICES = ("nvidia-dcgm", "dcgm-exporter", "nvidia-imex", "nvidia-fabricmanager", "nvidia-persistenced")
# Dependants first (modprobe(8) removes what is unused only).
MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia_peermem", "nvidia")


def stale(host: HostFacts, driver: DriverChoice) -> str | None:
    """Why the loaded module is not the installed one: another version, or the other flavour. None when it is."""
    loaded, flavour = host.driver.loaded, host.driver.loaded_flavour
    if not loaded:
        return None
    if not driver.kept:
        other = flavour is not None and flavour != driver.flavour and loaded.startswith(f"{driver.branch}.")
        modules = f" with {driver.flavour} modules" if other else ""
        return f"driver {loaded} is loaded, {driver.version or f'branch {driver.branch}'}{modules} is to replace it"
    if driver.version and loaded != driver.version:
        return f"driver {loaded} is loaded, {driver.version} is installed"
    if flavour and host.driver.installed_flavour and flavour != host.driver.installed_flavour:
        return f"the {flavour} module is loaded, the {host.driver.installed_flavour} one is installed"
    return None


def refuse_in_use(site: Site, driver: DriverChoice) -> None:
    """Raises HostBusy when the driver would change under running GPU work.

    Running programs keep the old libraries mapped, but every new one fails with "Driver/library version mismatch".
    """
    working = gpu_users(site.host)
    if driver.kept or not site.host.driver.loaded or not working or site.spec.allow_gpu_in_use:
        return
    shown = listing(working)
    raise HostBusy(
        f"{site.host.hostname}: the GPUs are in use, and the driver would change under {shown}",
        evidence="these processes hold /dev/nvidia*; nothing was touched",
        remedy=Remedy(
            RepairAction.WAIT,
            "stop them (drain the node) and run ",
            AGAIN,
            " again; --allow-gpu-in-use installs now, and new GPU programs fail until the reboot",
        ),
    )


def swap_step(site: Site, driver: DriverChoice) -> Step | None:
    """Unload the old module and load the new one; None when a reboot is the only way, or nothing is to be done."""
    reason = stale(site.host, driver)
    if reason is None or not can_swap(site, driver):
        return None
    return Step(
        SWAP_STEP,
        "unload the old module and load the new one",
        f"{reason}; no process uses the GPUs, so no reboot is needed",
        (
            Run(
                ("sh", "-s", "--", " ".join(SERVICES), " ".join(MODULES)),
                timeout_s=300,
                stdin=resources.script("kernel/reload_driver"),
                description="swap the modules: stop the driver's services, unload, load, start them again",
            ),
        ),
        replan_after=True,
    )


def can_swap(site: Site, driver: DriverChoice) -> bool:
    """Whether the installed module can replace the loaded one now."""
    return driver.kept and site.host.driver.installed is not None and _idle(site.host)


def will_swap(site: Site, driver: DriverChoice) -> Kept | None:
    """What a plan that installs another driver reports of the loaded one, when no reboot is in sight."""
    if driver.kept or stale(site.host, driver) is None or not _idle(site.host):
        return None
    words = "replaces the loaded one without a reboot, unless a program uses the GPUs by then"
    return Kept(SWAP_STEP, f"the new module {words}")


def _idle(host: HostFacts) -> bool:
    """Whether nobody but the driver's own services holds the GPUs. Not known (no root) is taken for in use."""
    return host.root and not gpu_users(host) and "busy" not in host.unread
