"""A node whose GPUs NVIDIA's DRA driver gives out: it alone, with what it needs of the node, from the boot on."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing, named
from gpunode.catalog import dra
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.engines import wanted
from gpunode.model.entities import unit as unit_entity
from gpunode.model.facts import HostFacts
from gpunode.model.kubelet_program import kubelet_version
from gpunode.model.kubernetes import CDI_REFRESH_UNIT, GPU_DRA_DRIVER, DevicePlugins
from gpunode.model.plan import BOOT_ORDER_STEP, engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Command, Remedy, RepairAction, gpunode, setup

ONE_OFF = "keep one off this node: by its DaemonSet's node selector, or with resources.gpus.enabled=false for DRA"
RUNTIME = ("--only", "runtime")


def _plugins(host: HostFacts) -> DevicePlugins:
    return host.kubernetes.device_plugins or DevicePlugins("")


def _not_by_dra(host: HostFacts, context: Context) -> str | None:
    """Why the DRA driver has no say in this node."""
    if context.mode == "dra" or (context.mode is None and GPU_DRA_DRIVER in _plugins(host).dra):
        return None
    return f"no DRA driver gives out GPUs here ({GPU_DRA_DRIVER}), and kubernetes.mode of the spec does not ask for one"


@check(
    "k8s.dra",
    Severity.WARNING,
    title="GPUs are given out in one way, and by what is wanted",
    reads="the kubelet's plugins_registry; RegisteredDevices of its checkpoint; kubernetes.mode of the spec",
    remedy=Remedy(RepairAction.CONFIGURE, "choose the DRA driver or the device plugin for a node"),
    needs=(needs.kubelet, needs.joined, needs.running_kubelet, needs.device_plugins, needs.gpu),
)
def one_way(host: HostFacts, context: Context) -> CheckOutcome:
    """A DRA driver and a device plugin both give out this node's GPUs, and neither knows what the other gave away; or
    it is not the one that the spec wants.
    """
    plugins = _plugins(host)
    by_dra = GPU_DRA_DRIVER in plugins.dra
    if not by_dra and context.mode != "dra":
        return NotApplicable(f"no DRA driver gives out GPUs here ({GPU_DRA_DRIVER})")
    if by_dra and any(plugins.resources.values()):
        return _both(plugins)
    if context.mode == "dra" and plugins.here:
        evidence = f"{plugins.directory}, /var/log/pods or processes have one of NVIDIA's"
        return _other("a device plugin", "dra", evidence, "its DaemonSet's node selector")
    if context.mode == "device-plugin":
        evidence = f"plugins_registry of the kubelet has {GPU_DRA_DRIVER}"
        return _other("a DRA driver", "device-plugin", evidence, "resources.gpus.enabled=false of its chart")
    if not by_dra:
        return _nobody()
    if plugins.registered is None:
        return NotApplicable("what device plugins have registered is not known")
    return None


def _both(plugins: DevicePlugins) -> Finding:
    return Finding(
        "a DRA driver and a device plugin both give out the GPUs",
        evidence=f"plugins_registry has {GPU_DRA_DRIVER}, RegisteredDevices has {listing(sorted(plugins.resources))}",
        remedy=Remedy(RepairAction.CONFIGURE, ONE_OFF),
    )


def _other(there: str, wanted: str, evidence: str, switch: str) -> Finding:
    return Finding(
        f"{there} is on this node, and kubernetes.mode of the spec is {wanted}",
        evidence=evidence,
        remedy=Remedy(
            RepairAction.CONFIGURE, f"drain the node and keep it off ({switch}); or want the one that is there"
        ),
    )


def _nobody() -> Finding:
    return Finding(
        "NVIDIA's DRA driver is not on this node: Kubernetes does not know of its GPUs",
        evidence=f"the kubelet's plugins_registry has no socket of {GPU_DRA_DRIVER}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "deploy its chart (",
            gpunode("k8s dra"),
            " prints the values); where it is deployed, taints and node selectors keep it away",
        ),
    )


@check(
    "k8s.dra-needs",
    Severity.ERROR,
    title="the node has what NVIDIA's DRA driver needs",
    reads="kubelet --version and its feature gates; the loaded driver's version; CRI Status: enableCDI",
    remedy=Remedy(RepairAction.CONFIGURE, setup(*RUNTIME)),
    needs=(needs.kubelet, needs.gpu),
)
def dra_needs(host: HostFacts, context: Context) -> CheckOutcome:
    """The DRA driver does not work here: CDI is off in the pods' engine, or driver or kubelet are too old for it."""
    if why := _not_by_dra(host, context):
        return NotApplicable(why)
    seen = [*_release(host), *_driver(host, context), *_cdi(host, context)]
    found = [one for one in seen if isinstance(one, Finding)]
    if found:
        return _together(found)
    return next((one for one in seen if isinstance(one, NotApplicable)), None)


def _together(found: list[Finding]) -> Finding:
    if len(found) == 1:
        return found[0]
    return Finding(
        "; ".join(one.summary for one in found),
        evidence="; ".join(one.evidence for one in found),
        remedy=Remedy(found[0].remedy.action, *_in_order(found)),
        severity=None if any(one.severity is None for one in found) else Severity.WARNING,
        steps=tuple(step for one in found for step in one.steps),
        entities=tuple(dict.fromkeys(entity for one in found for entity in one.entities)),
    )


def _in_order(found: list[Finding]) -> Iterator[str | Command]:
    for number, one in enumerate(found):
        yield from ("; then " if number else "", *one.remedy.parts)


def _release(host: HostFacts) -> Iterator[Finding | NotApplicable]:
    version = kubelet_version(host)
    if version is None:
        yield NotApplicable("the kubelet's release is not known")
        return
    upgrade = Remedy(RepairAction.UPGRADE, f"upgrade the cluster to {dra.documented_release()} or later")
    if dra.refused_release(version):
        yield _unready(version, "it has no DRA", upgrade)
    elif lacks := dra.lacking_gate(version, host.kubernetes.settings):
        yield _unready(version, lacks, _gate_on(version, host, upgrade))
    elif documented := dra.before_documented(version):
        yield Finding(
            f"the kubelet {version} is old for NVIDIA's DRA driver",
            evidence=f"{documented}; the driver is for {dra.releases()}",
            remedy=upgrade,
            severity=Severity.WARNING,
        )


def _unready(version: str, lacks: str, remedy: Remedy) -> Finding:
    return Finding(
        f"the kubelet {version} is not ready for NVIDIA's DRA driver",
        evidence=f"{lacks}; the driver is for {dra.releases()}",
        remedy=remedy,
    )


def _gate_on(version: str, host: HostFacts, upgrade: Remedy) -> Remedy:
    gate = host.kubernetes.settings.gates.get(dra.GATE) if host.kubernetes.settings else None
    if gate is not None and dra.on_by_default(version):
        return Remedy(RepairAction.CONFIGURE, f"take {dra.GATE}=false out of {gate.where}, and restart the kubelet")
    return Remedy(RepairAction.CONFIGURE, f"{dra.switched_on_where()}; or ", *upgrade.parts)


def _driver(host: HostFacts, context: Context) -> Iterator[Finding | NotApplicable]:
    version = host.driver.loaded
    if version is None:
        yield NotApplicable("no driver is loaded (drv.module-loaded)")
        return
    across = dra.shares_memory_with_hosts(host, context.catalog)
    if not dra.drives(version, across_hosts=across):
        least = dra.least_driver(across_hosts=across)
        yield Finding(
            f"driver {version} is too old for NVIDIA's DRA driver",
            evidence=f"/sys/module/nvidia/version holds {version}; {'ComputeDomains need' if across else 'it needs'} "
            f"{least} or later",
            remedy=Remedy(
                RepairAction.UPGRADE,
                "upgrade it: ",
                setup("--driver", dra.newer_branch(context.catalog, across_hosts=across)),
            ),
        )


def _cdi(host: HostFacts, context: Context) -> Iterator[Finding | NotApplicable]:
    from gpunode.catalog.cdi_versions import lacks_cdi
    from gpunode.engines.kubernetes.for_pods import may_run_pods

    engines = [engine for engine in wanted(host, context) if may_run_pods(engine)]
    if not engines:
        yield NotApplicable("no engine that speaks CRI is known to run")
        return
    old = [engine for engine in engines if lacks_cdi(engine)]
    off = [engine for engine in engines if engine.cdi is False and engine not in old]
    if old:
        yield Finding(
            f"{listing(f'{one.label} {one.version}' for one in old)} has no CDI, by which the DRA driver gives GPUs",
            evidence="containerd has it from 1.7 on, CRI-O from 1.24",
            remedy=Remedy(RepairAction.UPGRADE, f"upgrade {old[0].name}"),
            entities=unit_entity(*(one.unit for one in old)),
        )
    if off:
        yield Finding(
            f"CDI is off in {listing(one.label for one in off)}, by which the DRA driver gives GPUs",
            evidence=f"{off[0].effective_source or 'CRI Status'}: enableCDI false",
            remedy=_switched_on(context),
            steps=tuple(engine_step(one.label) for one in off) if context.mode else (),
            entities=unit_entity(*(one.unit for one in off)),
        )
    if unknown := [one for one in engines if one.cdi is None and one not in old]:
        yield NotApplicable(f"{listing(one.label for one in unknown)} did not say whether CDI is on")


def _switched_on(context: Context) -> Remedy:
    if context.mode:
        return Remedy(RepairAction.CONFIGURE, setup(*RUNTIME))
    # Setup would make nvidia the default, and no CDI, unless it is told what gives out the GPUs: a person's decision.
    return Remedy(RepairAction.CONFIGURE, "say what gives them out: ", setup(*RUNTIME, "--kubernetes-mode", "dra"))


@check(
    "k8s.dra-boot",
    Severity.WARNING,
    title="the kubelet starts after the GPUs' device nodes",
    reads="drop-ins of the kubelet's unit below /etc/systemd/system",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "kubernetes")),
    needs=(needs.kubelet, needs.gpu),
)
def dra_boot(host: HostFacts, context: Context) -> CheckOutcome:
    """After a boot the DRA driver may describe a GPU before its device nodes are made, and pods get it without them; or
    the kubelet does not start, as a drop-in of an earlier gpunode has it wait for CDI.
    """
    from gpunode.engines.kubernetes.boot_order import kubelet_unit, unread, waits_for_cdi, waits_for_nodes

    unit = kubelet_unit(host)
    # `k8s readiness --form systemd` printed that drop-in for nodes of the device plugin as well.
    if unit and (path := waits_for_cdi(host, unit)):
        return _in_a_circle(unit, path, context)
    if context.mode != "dra":
        return NotApplicable("kubernetes.mode of the spec is not dra")
    if unit is None:
        return NotApplicable(f"{host.init}, not systemd, starts the kubelet")
    if waits_for_nodes(host, unit):
        return None
    if why := unread(host, unit):
        return NotApplicable(why)
    return Finding(
        f"{unit} does not wait for the GPUs' device nodes at boot",
        evidence=f"no drop-in of {unit} has nvidia-modprobe as ExecStartPre",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "kubernetes"), " adds one, without a restart"),
        steps=(BOOT_ORDER_STEP,),
        entities=unit_entity(unit),
    )


def _in_a_circle(unit: str, path: str, context: Context) -> Finding:
    by_setup = context.mode == "dra"
    printed = gpunode("k8s readiness", "--form", "systemd", "--unit", unit, ssh=False)
    return Finding(
        f"{unit} may be left out at boot",
        evidence=f"{path}: After= has {CDI_REFRESH_UNIT}, which toolkit 1.19.0 starts after multi-user.target and so "
        f"after {unit}",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "kubernetes"), " takes it out, without a restart")
        if by_setup
        else Remedy(RepairAction.CONFIGURE, f"put into {named(path)} what ", printed, " prints, before the next boot"),
        steps=(BOOT_ORDER_STEP,) if by_setup else (),
        entities=unit_entity(unit),
    )
