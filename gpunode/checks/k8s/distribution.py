"""Whose Kubernetes is on this host."""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.checks import needs
from gpunode.checks.k8s.start import RUNS
from gpunode.checks.registry import Context, check
from gpunode.model import entities
from gpunode.model.facts import HostFacts
from gpunode.model.kubelet_program import kubelet_program
from gpunode.model.kubernetes import KUBELET_UNIT
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.remedy import Remedy, RepairAction


@check(
    "k8s.detect",
    Severity.WARNING,
    title="one distribution of Kubernetes is on this host, and it is known which",
    reads="the directories of Kubernetes distributions and clouds; the units of kubelets",
    remedy=Remedy(RepairAction.CONFIGURE, "systemctl disable --now the one that this node does not need"),
    needs=(needs.kubelet,),
)
def detect(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """Two kubelets run on this host: they fight over ports, pods and the GPUs."""
    running = _running(host)
    if len(running) > 1:
        units = list(running.values())
        return Finding(
            f"{listing(running)} run on this host: two kubelets",
            evidence=f"systemctl show: {listing(units)} are active",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"keep this node's own; for the other {typed('systemctl', 'disable', '--now', units[0])} "
                f"or {typed('systemctl', 'disable', '--now', units[1])}",
            ),
            entities=entities.unit(*units),
        )
    whose = host.kubernetes.distribution or next((one.name for one in host.runtimes if one.embedded_in), None)
    if whose is None:
        return NotApplicable("a kubelet is here, and nothing tells whose: no directory of a distribution or a cloud")
    known = kubelet_program(host)
    return Passed(f"{whose}, version {known[1]}" if known else whose)


def _running(host: HostFacts) -> dict[str, str]:
    """What has a kubelet, and its unit that is active."""
    of = {
        KUBELET_UNIT: "kubelet",
        **{unit: d.name for d in kubernetes_distributions() for unit in (*d.units, *d.kubelet_units)},
    }
    active = {unit: state for unit, state in host.services.items() if state.active in RUNS}
    return {name: unit for unit, name in of.items() if unit in active}
