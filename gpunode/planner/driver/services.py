"""What runs in addition to the driver: persistenced everywhere, the fabric's own services where a fabric is."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.catalog.versions import first_with
from gpunode.engines.toolkit_config import setting
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.driver import DriverChoice
from gpunode.model.plan import CHAR_LINKS_STEP, SERVICES_STEP, Kept, Step
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_MODE
from gpunode.model.versions import at_least
from gpunode.planner.site import Site

PERSISTENCED = "nvidia-persistenced"
FABRICMANAGER = "nvidia-fabricmanager"
IMEX = "nvidia-imex"
# By fabric. nvlsm is started by the fabric manager itself; on trays the switches lie elsewhere, and IMEX joins hosts.
FABRIC_UNITS = {"nvswitch": (FABRICMANAGER,), "nvlink5": (FABRICMANAGER,), "imex": (IMEX,)}
WHY = {
    FABRICMANAGER: "NVSwitch links come up with the fabric manager only",
    IMEX: "memory of other trays is reached through nvidia-imex (its peers: /etc/nvidia-imex/nodes_config.cfg)",
}
CDMM_FILE = "/etc/modprobe.d/gpunode-coherent.conf"
CHAR_RULE = "/etc/udev/rules.d/71-gpunode-dev-char.rules"


def services_step(site: Site, driver: DriverChoice, *, now: bool) -> Step | Kept | None:
    """Enabled, and started where the driver works by now; None on hosts without systemd.

    In an image nobody can be asked what is enabled, so they are enabled together with the install.
    """
    if not site.systemd and (site.host.init != "chroot" or driver.kept):
        return None
    units = (PERSISTENCED, *_fabric_units(site))
    lacking = [unit for unit in units if not _runs(site, unit, now=now)]
    if not lacking:
        does = ("run" if len(units) > 1 else "runs") if now else ("are enabled" if len(units) > 1 else "is enabled")
        return Kept(SERVICES_STEP, f"{' and '.join(units)} {does}")
    switch = ("--now",) if now else ()
    reasons = ["persistenced keeps the driver's state between containers", *(WHY[u] for u in lacking if u in WHY)]
    return Step(
        SERVICES_STEP,
        f"enable{' and start' if now else ''} {' and '.join(lacking)}",
        "; ".join(reasons),
        tuple(Run(("systemctl", "enable", *switch, f"{unit}.service"), timeout_s=120) for unit in lacking),
        safe=lacking == [PERSISTENCED],  # the others touch the links between GPUs that programs use
    )


def _fabric_units(site: Site) -> tuple[str, ...]:
    """Without nvidia-imex where the DRA driver's ComputeDomains bring their own (planner/engines/kubelet/dra.py)."""
    off = (IMEX,) if site.spec.kubernetes.mode == "dra" else ()
    return tuple(unit for unit in FABRIC_UNITS.get(site.fabric or "", ()) if unit not in off)


def modules(site: Site) -> tuple[str, ...]:
    """What is loaded at every boot. nvlsm, the subnet manager of NVLink 5 switches, speaks through ib_umad."""
    return ("nvidia", "nvidia-uvm", *(("ib_umad",) if site.fabric == "nvlink5" else ()))


def coherent_step(site: Site, driver: DriverChoice) -> Step | None:
    """On Grace machines with a kubelet the driver, not the kernel, manages the GPUs' memory.

    Otherwise it shows up as NUMA nodes of the host, and pods without a GPU are given memory of the GPUs (driver
    installation guide, "Coherent Driver-based Memory Management").
    """
    if not site.host.kubernetes.kubelet or not any(c.coherent for c in site.gpu_models):
        return None
    if driver.branch < first_with("driver", "coherent-memory-mode")[0]:
        return None
    text = resources.render("modprobe/coherent.conf.j2")
    file = site.host.file(CDMM_FILE)
    if file.text == text or site.host.driver.params.get("CoherentGPUMemoryMode") == "driver":
        return None
    return Step(
        "driver.coherent",
        "let the driver manage the GPUs' coherent memory, from the next load of the module on",
        "as NUMA nodes of the host it would be given to pods that have no GPU",
        (PutFile(CDMM_FILE, text, expect_sha256=file.sha256, any_before=True),),
    )


def char_links_step(site: Site) -> Step | None:
    """Links in /dev/char for engines with systemd's cgroups and containers that are not made through CDI.

    Without them a `systemctl daemon-reload` takes the GPUs away from running containers (NVIDIA container toolkit,
    "Containers losing access to GPUs").
    """
    host, toolkit = site.host, site.host.toolkit
    bare = [d for d in host.devices if not d.char_link]
    systemd = any(any(engine.systemd_cgroup.values()) for engine in host.runtimes)
    if toolkit.version is None or not bare or not systemd or not _legacy(site):
        return None
    text = resources.render("udev/dev-char.rules.j2")
    file = host.file(CHAR_RULE)
    links = ("nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all")
    put: Sequence[Action] = (PutFile(CHAR_RULE, text, expect_sha256=file.sha256, any_before=True),)
    return Step(
        CHAR_LINKS_STEP,
        "link the GPUs in /dev/char, now and whenever the driver finds one",
        "without the links a systemctl daemon-reload takes the GPUs away from running containers",
        (*(put if file.text != text else ()), Run(links, timeout_s=60)),
        safe=True,
    )


def _legacy(site: Site) -> bool:
    """Whether containers get their GPUs by the hook, not through CDI, which needs no links."""
    mode = setting(site.host.file(TOOLKIT_CONFIG), TOOLKIT_MODE) or "auto"
    by_cdi = at_least(site.host.toolkit.version, first_with("toolkit", "cdi-by-default"))
    return mode == "legacy" or (mode == "auto" and not by_cdi)


def _runs(site: Site, unit: str, *, now: bool) -> bool:
    service = site.service(unit)
    return service.enabled in ("enabled", "static", "alias") and (service.active == "active" or not now)
