"""What a node needs before NVIDIA's DRA driver is deployed on it, and what is said where gpunode cannot provide it.

The engines' part, CDI, is planned with the engines (planner/engines/steps.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.catalog import dra
from gpunode.catalog.load import Catalog
from gpunode.engines.kubernetes.boot_order import kubelet_unit, waits_for_cdi, waits_for_nodes
from gpunode.engines.kubernetes.for_pods import may_run_pods
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.facts import RUNS, HostFacts, ServiceFacts
from gpunode.model.kubernetes import CDI_REFRESH_UNIT, boot_drop_in
from gpunode.model.plan import BOOT_ORDER_STEP, IMEX_STEP, Kept, Step
from gpunode.model.spec import Spec
from gpunode.planner.engines.kubelet.daemon import kubelet_of
from gpunode.remedy import Remedy, RepairAction

Outcome = Step | Kept
RELEASE, DRIVER = "kubernetes.release", "kubernetes.driver"
ENGINE, PLUGIN = "kubernetes.engine", "kubernetes.device-plugin"
WRITTEN = "Written by gpunode."


def dra_outcomes(host: HostFacts, spec: Spec, catalog: Catalog) -> list[Outcome]:
    """Nothing unless the spec's mode is dra."""
    if spec.kubernetes.mode != "dra":
        return []
    across = dra.shares_memory_with_hosts(host, catalog)
    found = [_imex(host) if across else None, _boot_order(host), *_notes(host, spec, across=across)]
    return [one for one in found if one is not None]


def _imex(host: HostFacts) -> Outcome | None:
    """The host's own nvidia-imex is off and stays off: each ComputeDomain brings one (the driver's prerequisites)."""
    if host.init not in ("systemd", "chroot"):
        return None
    now = host.services.get(dra.IMEX) or ServiceFacts()
    actions, masked = _off(now, live=host.init == "systemd"), now.is_masked
    if not actions:
        return Kept(IMEX_STEP, f"{dra.IMEX} is masked: ComputeDomains bring their own")
    what = "stop" if masked else "disable and mask" if len(actions) > 1 else "mask"
    return Step(
        IMEX_STEP,
        f"{what} {dra.IMEX}",
        "each ComputeDomain brings an nvidia-imex of its own; the DRA driver's prerequisites want the host's masked",
        actions,
        () if masked else _on_again(now),
    )


def _off(now: ServiceFacts, *, live: bool) -> tuple[Action, ...]:
    runs = live and now.active in RUNS
    if now.is_masked:
        return (Run(("systemctl", "stop", dra.IMEX), timeout_s=120),) if runs else ()
    mask = Run(("systemctl", "mask", dra.IMEX), timeout_s=60)
    if not runs and not now.enabled.startswith("enabled"):
        return (mask,)
    return (Run(("systemctl", "disable", *(("--now",) if runs else ()), dra.IMEX), timeout_s=120), mask)


def _on_again(now: ServiceFacts) -> tuple[Action, ...]:
    unmask = Run(("systemctl", "unmask", dra.IMEX), timeout_s=60)
    runs = now.active in RUNS
    if now.enabled.startswith("enabled"):
        return (unmask, Run(("systemctl", "enable", *(("--now",) if runs else ()), dra.IMEX), timeout_s=120))
    return (unmask, Run(("systemctl", "start", dra.IMEX), timeout_s=120)) if runs else (unmask,)


def _boot_order(host: HostFacts) -> Outcome:
    """A drop-in that systemd reads at the next boot, which is when it counts: nothing is reloaded or restarted."""
    unit = kubelet_unit(host)
    if unit is None:
        seen = "no kubelet was found" if host.init in ("systemd", "chroot") else f"{host.init} starts the kubelet here"
        return Kept(BOOT_ORDER_STEP, f"{seen}: what makes the GPUs' device nodes before it is not set up", beware=True)
    in_a_circle = waits_for_cdi(host, unit)
    if (path := waits_for_nodes(host, unit)) and not in_a_circle:
        return Kept(BOOT_ORDER_STEP, f"{unit} starts after the GPUs' device nodes ({path})")
    file = host.file(boot_drop_in(unit))
    if file.unread:
        remedy = Remedy(RepairAction.CONFIGURE, "make it a plain text file")
        text = f"{file.path} could not be read"
        return Kept(BOOT_ORDER_STEP, text, refused=True, evidence=file.unread, remedy=remedy)
    text = resources.render("systemd/kubelet-after-gpus.conf.j2", by=WRITTEN)
    return Step(
        BOOT_ORDER_STEP,
        f"start {unit} after the GPUs' device nodes, from the next boot on ({file.path})",
        f"{CDI_REFRESH_UNIT} may start after multi-user.target, and so after {unit}: one of them is left out at boot"
        if in_a_circle
        else "the DRA driver describes the nodes that it finds, and a pod keeps an incomplete description",
        (PutFile(file.path, text, expect_sha256=file.sha256, any_before=True),),
        safe=True,
    )


def _notes(host: HostFacts, spec: Spec, *, across: bool) -> Sequence[Kept]:
    notes: list[Kept] = []
    kubelet = kubelet_of(host)
    if kubelet is None:
        notes.append(
            Kept(RELEASE, f"the kubelet's release is not known: the DRA driver is for {dra.releases()}", beware=True)
        )
    else:
        lacks = dra.lacking_gate(kubelet.version, host.kubernetes.settings), dra.before_documented(kubelet.version)
        if said := "; ".join(filter(None, lacks)):
            notes.append(Kept(RELEASE, f"{kubelet} is not ready for DRA by itself: {said}", beware=True))
    if "driver" not in spec.only and host.driver.loaded is None and host.driver.installed is None:
        least = dra.least_driver(across_hosts=across)
        notes.append(Kept(DRIVER, f"the driver's version is not known: {least} or later is needed", beware=True))
    if host.kubernetes.joined and host.kubernetes.device_plugins is None:
        why = "the kubelet's directory was not read" + ("" if host.root else ": that needs root")
        notes.append(Kept(PLUGIN, f"whether a device plugin is on this node is not known: {why}", beware=True))
    if not any(map(may_run_pods, host.runtimes)):
        notes.append(Kept(ENGINE, "no engine that speaks CRI was found: CDI has to be on in the one of the pods"))
    return notes
