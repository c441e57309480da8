"""The services that bring up the links between GPUs on boards with NVSwitches, and what the GPUs say of them."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import driver_version
from gpunode.model import entities
from gpunode.model.facts import RUNS, HostFacts, ServiceFacts
from gpunode.model.installed import installed_source
from gpunode.model.plan import IMEX_STEP, SERVICES_STEP
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

UNIT = "nvidia-fabricmanager.service"
START = f"systemctl enable --now {UNIT}; journalctl -b -u {UNIT} shows why it stops"
SETUP = setup("--only", "driver")
# nvidia-fabricmanager, nvidia-fabricmanager-580, and nvidia-fabric-manager (catalog/distros.yaml); not the -devel.
PACKAGE = regex(r"nvidia-fabric-?manager(?:-[0-9]+)?")
IMEX = "nvidia-imex.service"
OFF_AT_BOOT = ("disabled", "enabled-runtime")  # UnitFileState; the second is in /run, which a boot empties
# nvidia-smi's words for a GPU whose fabric is as it should be (GPU Fabric health, nvidia-smi --help-query-gpu).
WELL = ("Healthy", "Full", "False", "None", "N/A")
PASSING = ("route_recovery_in_progress", "access_timeout_recovery")


def fabric(host: HostFacts, context: Context) -> str | None:
    """What joins its GPUs: "nvswitch" (on the PCI bus), "nvlink5" (managed over the network functions), "imex"."""
    if context.catalog.nvswitches(host):
        return "nvswitch"
    kinds = {context.catalog.gpu_model(gpu.device).fabric for gpu in host.gpus}
    if "imex" in kinds:
        return "imex"
    return "nvlink5" if "nvlink5" in kinds and host.driver.switch_management else None


def _has_manager(host: HostFacts, context: Context) -> str | None:
    """Why there is nothing for a fabric manager to do."""
    if fabric(host, context) in ("nvswitch", "nvlink5"):
        return None
    return _unseen(host, context) or "no NVSwitch on this board"


def _unseen(host: HostFacts, context: Context) -> str | None:
    """What is said of GPUs for boards with NVLink 5 switches where no function manages any: in a virtual machine that
    is so, on metal the functions may be passed through, or not be read."""
    made = [gpu.address for gpu in host.gpus if context.catalog.gpu_model(gpu.device).fabric == "nvlink5"]
    if not made or host.driver.switch_management:
        return None
    how = "no network function has SW_MNG in its VPD" + ("" if host.root else ", which root alone reads")
    return f"the NVSwitches that {listing(made, 1)} may have are not seen: {how}"


@check(
    "svc.fabricmanager-active",
    Severity.ERROR,
    title="the fabric manager runs where NVSwitches are, and will after the next boot",
    reads=f"{UNIT} of systemd; NVSwitches on the PCI bus, or behind its network functions",
    remedy=Remedy(RepairAction.RESTART_SERVICE, START),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def fabricmanager_active(host: HostFacts, context: Context) -> CheckOutcome:
    """The fabric manager does not run, or will not after the next boot: CUDA does not start on this board without it
    (system not yet initialized)."""
    if reason := _has_manager(host, context):
        return NotApplicable(reason)
    unit = host.services.get(UNIT)
    if host.init != "systemd" or unit is None:
        return NotApplicable("the state of its unit was not read")
    if _runs(unit):
        return _off_at_boot(unit)
    if unit.load == "not-found":
        return Finding(
            "the fabric manager is not installed",
            evidence=f"{UNIT} is not found, and the board has NVSwitches",
            remedy=Remedy(RepairAction.UPGRADE, SETUP),
            entities=entities.unit(UNIT),
        )
    return Finding(
        f"the fabric manager {_state(unit)}",
        evidence=f"{UNIT}: ActiveState {unit.active}, SubState {unit.sub}, {unit.enabled or 'no'} unit file",
        remedy=Remedy(RepairAction.RESTART_SERVICE, START),
        entities=entities.unit(UNIT),
    )


def _runs(unit: ServiceFacts) -> bool:
    """One that ends, and that systemd starts again after a pause, is "activating" all the while."""
    return unit.active in RUNS and unit.sub != "auto-restart"


def _state(unit: ServiceFacts) -> str:
    """Of one that does not run."""
    return "ends and is started again" if unit.active in RUNS else f"is {unit.active}"


def _off_at_boot(unit: ServiceFacts) -> Finding | None:
    if unit.enabled not in OFF_AT_BOOT:
        return None
    return Finding(
        "the fabric manager runs, and nothing starts it at the next boot",
        evidence=f"{UNIT}: ActiveState {unit.active}, UnitFileState {unit.enabled}",
        remedy=Remedy(RepairAction.RESTART_SERVICE, f"systemctl enable {UNIT}"),
        entities=entities.unit(UNIT),
        steps=(SERVICES_STEP,),
    )


@check(
    "svc.fabricmanager-needless",
    Severity.WARNING,
    title="no fabric manager fails where there are no NVSwitches",
    reads=f"{UNIT} of systemd; NVSwitches on the PCI bus, or behind its network functions",
    remedy=Remedy(RepairAction.RESTART_SERVICE, f"systemctl disable --now {UNIT}"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def fabricmanager_needless(host: HostFacts, context: Context) -> CheckOutcome:
    """The fabric manager is enabled on a board without NVSwitches: it fails at every boot (NV_WARN_NOTHING_TO_DO)."""
    if _has_manager(host, context) is None:
        return NotApplicable("the board has NVSwitches (svc.fabricmanager-active)")
    if made := [gpu for gpu in host.gpus if context.catalog.gpu_model(gpu.device).fabric]:
        return NotApplicable(f"{listing(gpu.address for gpu in made)} is made for boards with NVSwitches")
    unit = host.services.get(UNIT)
    if host.init != "systemd" or unit is None:
        return NotApplicable("the state of its unit was not read")
    if unit.active != "failed" and unit.sub != "auto-restart":
        return None
    return Finding(
        "the fabric manager fails, and has nothing to do here: the GPUs do not need it",
        evidence=f"{UNIT}: ActiveState {unit.active}, SubState {unit.sub}; no NVSwitch on this board",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE, f"systemctl disable --now {UNIT}; systemctl reset-failed {UNIT} clears it"
        ),
        entities=entities.unit(UNIT),
    )


@check(
    "svc.fabricmanager-version",
    Severity.ERROR,
    title="fabric manager and driver are one version",
    reads="the package list; /sys/module/nvidia/version",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.packages),
)
def fabricmanager_version(host: HostFacts, context: Context) -> CheckOutcome:
    """The fabric manager is not of the driver's version: it stops, and CUDA does not start."""
    if reason := _has_manager(host, context):
        return NotApplicable(reason)
    there = {n: p for n, p in host.packages.installed.items() if PACKAGE.fullmatch(n) and p.configured}
    known = [(name, version) for name, p in sorted(there.items()) if (version := driver_version(p.version))]
    if not known:
        return NotApplicable("no package provides the fabric manager (svc.fabricmanager-active)")
    wrong = [(name, version) for name, version in known if version != host.driver.loaded]
    if not wrong:
        return None
    name, version = wrong[0]
    if version == host.driver.installed:
        return NotApplicable(f"both are {version} after a reboot (drv.running-vs-installed)")
    return Finding(
        f"fabric manager {version} stops at driver {host.driver.loaded}: both must be one version",
        evidence=f"package {name} {there[name].version}; /sys/module/nvidia/version holds {host.driver.loaded}",
        remedy=Remedy(RepairAction.UPGRADE, SETUP),
        entities=entities.unit(UNIT),
    )


@check(
    "svc.fabric-state",
    Severity.ERROR,
    title="every GPU has joined the NVLink fabric",
    reads="nvidia-smi -q -x: fabric/state, fabric/status",
    remedy=Remedy(RepairAction.RESTART_SERVICE, f"systemctl restart {UNIT}"),
    needs=(needs.gpu, needs.host_driver, needs.smi_ran),
)
def fabric_state(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has not joined its NVLink fabric: CUDA does not start on it (error 802, system not yet initialized)."""
    smi = host.driver.smi
    inside = [gpu for gpu in smi.gpus if gpu.fabric_state not in (None, "N/A")] if smi else []
    if not inside:
        return NotApplicable("nvidia-smi reports no fabric")
    out = [gpu for gpu in inside if gpu.fabric_state != "Completed" or gpu.fabric_status not in (None, "Success")]
    if not out:
        return None
    waiting = all(gpu.fabric_state == "In Progress" for gpu in out)
    first = out[0]
    return Finding(
        f"{_named(out)} {'has' if len(out) == 1 else 'have'} not joined the NVLink fabric",
        evidence=f"nvidia-smi -q -x, {_named([first])}: fabric state {first.fabric_state}, "
        f"status {first.fabric_status or 'not given'}",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE,
            "after a boot wait; " if waiting else "",
            f"journalctl -b -u {UNIT} names the link; with no GPU work: systemctl restart {UNIT}",
        ),
        entities=entities.pci(*(gpu.pci_address for gpu in out if gpu.pci_address)),
    )


@check(
    "svc.fabric-health",
    Severity.ERROR,
    title="the NVLink fabric of every GPU is healthy",
    reads="nvidia-smi -q -x: fabric/health",
    remedy=Remedy(RepairAction.SUPPORT, f"journalctl -b -u {UNIT}; then the cables and switches of that link"),
    needs=(needs.gpu, needs.host_driver, needs.smi_ran),
)
def fabric_health(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's NVLink fabric is degraded, wrongly configured, or recovering its routes."""
    smi = host.driver.smi
    told = [gpu for gpu in smi.gpus if any(word != "N/A" for word in gpu.fabric_health.values())] if smi else []
    if not told:
        return NotApplicable("nvidia-smi reports no health of a fabric (drivers before 550 have none)")
    sick = [gpu for gpu in told if _complaints(gpu)]
    if not sick:
        return None
    recovers = all(name in PASSING for gpu in sick for name in _complaints(gpu) if name != "summary")
    worst = sick[0]
    said = listing((f"{name} {word}" for name, word in _complaints(worst).items()), 4)
    return Finding(
        f"the NVLink fabric of {_named(sick)} {'is recovering its routes' if recovers else 'is not healthy'}",
        evidence=f"nvidia-smi -q -x, {_named([worst])}: fabric health: {said}",
        remedy=Remedy(RepairAction.WAIT, "run the check again in some minutes; an error then is one of a link")
        if recovers
        else Remedy(
            RepairAction.SUPPORT,
            f"drain the node; journalctl -b -u {UNIT} names the link; then its cable and switch, "
            "or a GPU reset with nothing running",
        ),
        severity=Severity.WARNING if recovers else None,
        entities=entities.pci(*(gpu.pci_address for gpu in sick if gpu.pci_address)),
    )


def _complaints(gpu: SmiGpu) -> dict[str, str]:
    return {name: word for name, word in gpu.fabric_health.items() if word not in WELL}


def _named(gpus: Iterable[SmiGpu]) -> str:
    return listing(gpu.pci_address or f"GPU {gpu.index}" for gpu in gpus)


@check(
    "svc.nvlsm",
    Severity.ERROR,
    title="the subnet manager of NVLink 5 switches can work",
    reads="the package list; /sys/module/ib_umad; /sys/class/infiniband; SW_MNG in the VPD of network functions",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.packages),
)
def nvlsm(host: HostFacts, context: Context) -> CheckOutcome:
    """The NVLink 5 switches have no subnet manager: the GPUs stay "In Progress", and CUDA does not start."""
    if fabric(host, context) != "nvlink5":
        return NotApplicable(_unseen(host, context) or "no NVLink 5 switches that this host manages")
    package = host.packages.installed.get("nvlsm")
    if package is None or not package.configured:
        summary, evidence = "nvlsm, the subnet manager of the NVLink switches, is not installed", "no package nvlsm"
        action = RepairAction.UPGRADE
    elif lacking := _not_loaded(host):
        names = " and ".join(lacking)
        summary = f"nvlsm cannot reach the NVLink switches: {names} {'are' if len(lacking) > 1 else 'is'} not loaded"
        evidence, action = "; ".join(lacking.values()), RepairAction.RELOAD_MODULE
    else:
        return None
    switches = listing(host.driver.switch_management, 4)
    # No archive has nvlsm (catalog/distros.yaml): a driver of one stays as it is, and would stay without.
    other = ("--driver-source", "cuda") if installed_source(host) == "distro" else ()
    remedy = Remedy(RepairAction.UPGRADE, setup("--only", "driver", *other))
    if action is RepairAction.RELOAD_MODULE:
        load = " && ".join(f"modprobe {name}" for name in _not_loaded(host))
        remedy = Remedy(action, f"{load} (of the kernel's extra modules), then systemctl restart {UNIT}")
    return Finding(
        summary,
        evidence=f"{evidence}; switches are managed through {switches}",
        remedy=remedy,
        entities=entities.pci(*host.driver.switch_management),
    )


def _not_loaded(host: HostFacts) -> dict[str, str]:
    """The modules through which nvlsm speaks to the switches, and how each is known to be absent.

    The fabric manager finds the switches below /sys/class/infiniband alone, which mlx5_ib fills (gpu-operator#2781).
    """
    switches, modules = host.driver.switch_management, host.kernel.modules
    found = host.system is None or any(port.address in switches for port in host.system.rdma)
    lacking = {}
    if not found and "mlx5_ib" not in modules:
        lacking["mlx5_ib"] = "/sys/class/infiniband has none of their functions"
    if "ib_umad" not in modules:
        lacking["ib_umad"] = "/sys/module/ib_umad is absent"
    return lacking


@check(
    "svc.imex",
    Severity.WARNING,
    title="nvidia-imex runs on trays whose GPUs share memory with other trays, but beside ComputeDomains",
    reads=f"{IMEX} of systemd",
    remedy=Remedy(RepairAction.RESTART_SERVICE, f"systemctl enable --now {IMEX}"),
    needs=(needs.gpu, needs.host_driver, needs.loaded),
)
def imex(host: HostFacts, context: Context) -> CheckOutcome:
    """nvidia-imex does not run, so programs cannot use the memory of other trays.

    On a Kubernetes node the DRA driver's ComputeDomains bring their own, and ask for the host's to be off: where
    kubernetes.mode of the spec is dra, it is the one that runs which is found.
    """
    if fabric(host, context) != "imex":
        return NotApplicable("no GPU here shares memory with other trays")
    unit = host.services.get(IMEX)
    if host.init != "systemd" or unit is None:
        return NotApplicable("the state of its unit was not read")
    if context.mode == "dra":
        return _beside_compute_domains(unit)
    if _runs(unit):
        return None
    if host.kubernetes.kubelet and unit.active not in (*RUNS, "failed"):
        return NotApplicable("Kubernetes' ComputeDomains bring their own, and want the host's off")
    if unit.load == "not-found":
        summary, evidence = "nvidia-imex is not installed", f"{IMEX} is not found"
        remedy = Remedy(RepairAction.UPGRADE, SETUP)
    else:
        summary = f"nvidia-imex {_state(unit)}"
        evidence = f"{IMEX}: ActiveState {unit.active}, SubState {unit.sub}"
        remedy = Remedy(
            RepairAction.RESTART_SERVICE,
            f"systemctl enable --now {IMEX}; journalctl -b -u {IMEX} shows why it stops; its peers are in "
            "/etc/nvidia-imex/nodes_config.cfg",
        )
    return Finding(summary, evidence, remedy, entities=entities.unit(IMEX))


def _beside_compute_domains(unit: ServiceFacts) -> Finding | None:
    starts = unit.enabled.startswith("enabled")
    if unit.active not in RUNS and not starts:
        return None
    return Finding(
        f"nvidia-imex {'runs' if unit.active in RUNS else 'starts at the next boot'}: ComputeDomains bring their own",
        evidence=f"{IMEX}: ActiveState {unit.active}, {unit.enabled or 'no'} unit file; kubernetes.mode is dra",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "kubernetes"), " disables and masks it"),
        steps=(IMEX_STEP,),
        entities=entities.unit(IMEX),
    )
