"""Daemons beside the driver: what keeps its state, what measures, and what systemd starts over and over."""

from __future__ import annotations

import re

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model import entities
from gpunode.model.facts import RUNS, HostFacts, ServiceFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction

PERSISTENCED, DCGM = "nvidia-persistenced.service", "nvidia-dcgm.service"
# Cards for a desk: their driver is kept by the screen, or rests on purpose.
DESKTOP = regex(r"\b(GeForce|Quadro|TITAN|NVS|RTX)\b(?!.*\bServer\b)", re.IGNORECASE)
FLAPS = 3  # restarts: NVSentinel's system-services-monitor has 3 in 600 s; NRestarts has no clock
# Each has an NVML and profiling counters of its own; a command's name has at most 15 characters.
MEASURES = ("nv-hostengine", "dcgm-exporter", "nsys", "ncu")


def systemd(host: HostFacts) -> str | None:
    if host.init != "systemd":
        return f"{host.init}, not systemd, starts its services"
    return needs.read("services")(host) or (None if host.services else "no state of a service was read")


@check(
    "svc.persistenced",
    Severity.WARNING,
    title="the driver keeps the GPUs ready between programs",
    reads=f"nvidia-smi -q -x: persistence_mode; {PERSISTENCED} of systemd",
    remedy=Remedy(RepairAction.RESTART_SERVICE, f"systemctl enable --now {PERSISTENCED}"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def persistenced(host: HostFacts, context: Context) -> CheckOutcome:
    """nvidia-persistenced failed, or a data centre's GPU is shut down whenever its last program ends.

    Then the next program waits for seconds, and settings such as power limits are lost. A card for a desk is left in
    peace: its screen keeps it awake, or a laptop rests.
    """
    unit = host.services.get(PERSISTENCED)
    if unit is not None and unit.active == "failed":
        return _failed(PERSISTENCED, unit)
    gpus = host.driver.smi.gpus if host.driver.smi else ()
    known = [gpu for gpu in gpus if gpu.persistence is not None]
    if not known:
        return NotApplicable("nvidia-smi does not say whether persistence mode is on")
    off = [gpu for gpu in known if not gpu.persistence and not DESKTOP.search(gpu.name)]
    if not off:
        return None
    installed = unit is not None and unit.load == "loaded"
    return Finding(
        f"the driver shuts {_named(off)} down whenever nothing runs there",
        evidence=f"nvidia-smi -q -x, {_named(off[:1])}: persistence_mode Disabled; {PERSISTENCED}: "
        f"{unit.active if unit and installed else 'not found'}",
        remedy=Remedy(RepairAction.RESTART_SERVICE, f"systemctl enable --now {PERSISTENCED}")
        if installed
        else Remedy(RepairAction.UPGRADE, f"install the driver's persistence daemon ({PERSISTENCED}) and enable it"),
        entities=entities.pci(*(gpu.pci_address for gpu in off if gpu.pci_address)),
    )


def _named(gpus: list[SmiGpu]) -> str:
    return listing(gpu.pci_address or f"GPU {gpu.index}" for gpu in gpus)


def _failed(name: str, unit: ServiceFacts) -> Finding:
    return Finding(
        f"{name} failed",
        evidence=f"{name}: ActiveState {unit.active}, SubState {unit.sub}",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE,
            f"journalctl -b -u {name} shows why; then {typed('systemctl', 'restart', name)}",
        ),
        entities=entities.unit(name),
    )


@check(
    "svc.dcgm",
    Severity.WARNING,
    title="DCGM's daemon runs where it is installed",
    reads=f"{DCGM} of systemd",
    remedy=Remedy(RepairAction.RESTART_SERVICE, f"journalctl -b -u {DCGM}; systemctl restart {DCGM}"),
    needs=(needs.gpu, needs.host_driver, systemd),
)
def dcgm(host: HostFacts, context: Context) -> CheckOutcome:
    """DCGM's daemon failed: nobody watches the GPUs' health any more."""
    unit = host.services.get(DCGM)
    if unit is None:
        return NotApplicable("the state of its unit was not read")
    if unit.load != "loaded" or unit.active == "inactive":
        return NotApplicable("DCGM is not installed, or off")
    return _failed(DCGM, unit) if unit.active == "failed" else None


@check(
    "svc.dcgm-profiling-lock",
    Severity.WARNING,
    title="one program alone reads the profiling counters",
    reads="processes that hold /dev/nvidia*",
    remedy=Remedy(
        RepairAction.CONFIGURE, "let dcgm-exporter ask the host's DCGM (--remote-hostengine-info), or stop one"
    ),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.read("busy")),
)
def profiling_lock(host: HostFacts, context: Context) -> CheckOutcome:
    """Two programs want the GPUs' profiling counters, which one alone can have: the other's metrics stay empty."""
    if not host.root:
        return NotApplicable("only root sees which processes hold the GPUs")
    asking = [line for line in host.driver.busy if line.partition(" ")[2].startswith(MEASURES)]
    if len(asking) < 2:
        return None
    return Finding(
        f"{len(asking)} programs read the GPUs' profiling counters, which one alone can have",
        evidence=f"they hold /dev/nvidia*: {listing(asking, 4)}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "let dcgm-exporter ask the DCGM that is there (--remote-hostengine-info), or stop one of them",
        ),
    )


@check(
    "svc.restart-flap",
    Severity.WARNING,
    title="no service that GPU work needs ends over and over",
    reads="systemctl show: NRestarts of engines, kubelet and NVIDIA's services",
    remedy=Remedy(RepairAction.SUPPORT, "journalctl -b -u UNIT shows what it ends with"),
    needs=(needs.gpu, systemd),
)
def restart_flap(host: HostFacts, context: Context) -> CheckOutcome:
    """A service has ended by itself again and again, and systemd started it anew.

    A restart by hand or by an upgrade does not count, and sets the number to 0. One that ended for good is said to be
    stopped by its own check. A kubelet that has not joined a cluster ends until it has.
    """
    counted = {name: unit for name, unit in host.services.items() if unit.restarts is not None}
    if not counted:
        return NotApplicable("systemd counts no restarts (NRestarts is of version 235)")
    joined = host.kubernetes.joined
    alive = {n: u for n, u in counted.items() if u.active in RUNS and (joined or n != "kubelet.service")}
    often = {name: unit.restarts for name, unit in alive.items() if unit.restarts and unit.restarts >= FLAPS}
    if not often:
        return None
    worst = max(often, key=lambda name: often[name])
    unit = alive[worst]
    return Finding(
        f"{listing(f'{name} ({often[name]} times)' for name in sorted(often))} ended by itself and was started again",
        evidence=f"{worst}: NRestarts {unit.restarts}, ActiveState {unit.active}, SubState {unit.sub}",
        remedy=Remedy(RepairAction.SUPPORT, f"{typed('journalctl', '-b', '-u', worst)} shows what it ends with"),
        entities=entities.unit(*sorted(often)),
    )
