"""Will what containers and pods need be there after the next boot?"""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.svc.daemons import systemd
from gpunode.model import entities
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import CLOUDS
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction


@check(
    "svc.starts-at-boot",
    Severity.WARNING,
    title="the engines and the kubelet that run start at the next boot as well",
    reads="systemctl show: UnitFileState, WantedBy, RequiredBy, BoundBy, UpheldBy, TriggeredBy of engines and kubelet",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl enable UNIT"),
    needs=(needs.gpu, systemd),
)
def starts_at_boot(host: HostFacts, context: Context) -> CheckOutcome:
    """An engine or the kubelet runs, and nothing starts it at the next boot: with a reboot the node is gone.

    Packages of RHEL's kin enable neither docker nor containerd nor the kubelet, and kubeadm starts a kubelet without
    enabling it. A cloud's nodes are left out: what makes them nodes starts them at each boot.
    """
    from gpunode.engines.kubernetes.at_boot import off_at_boot, running

    if host.kubernetes.distribution in CLOUDS:
        return NotApplicable(f"what makes this a node of {host.kubernetes.distribution} starts them at each boot")
    run = running(host)
    if not run:
        return NotApplicable("no unit of an engine or of a kubelet runs")
    if all(unit.wanted_by is None for unit in run.values()):
        return NotApplicable("which units start them was not read: the recording is of an older gpunode")
    off = off_at_boot(host)
    if not off:
        return None
    one = len(off) == 1
    said = (f"{name}: UnitFileState {run[name].enabled}, no unit wants it" for name in off)
    return Finding(
        f"{listing(off)} {'runs' if one else 'run'}, and nothing starts {'it' if one else 'them'} at the next boot",
        evidence=listing(said, between="; "),
        remedy=Remedy(RepairAction.RESTART_SERVICE, typed("systemctl", "enable", *off)),
        entities=entities.unit(*off),
    )
