"""What containers and pods need, and runs because somebody started it: the next boot is without it."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.k8s.start import unit_of
from gpunode.checks.registry import Context, check
from gpunode.checks.svc.daemons import RUNS, systemd
from gpunode.model import entities
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.kubernetes import CLOUDS
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

OFF_AT_BOOT = ("disabled", "linked")  # UnitFileState of one that no link in a target's .wants names
# Unit of a daemon -> that which starts it when it is first asked for.
ON_DEMAND = {"docker.service": "docker.socket"}


@check(
    "svc.starts-at-boot",
    Severity.WARNING,
    title="the engines and the kubelet that run start at the next boot as well",
    reads="systemctl show: UnitFileState, WantedBy, RequiredBy, BoundBy and UpheldBy of engines and kubelet",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl enable UNIT"),
    needs=(needs.gpu, systemd),
)
def starts_at_boot(host: HostFacts, context: Context) -> CheckOutcome:
    """An engine or the kubelet runs, and nothing starts it at the next boot: with a reboot the node is gone.

    Packages of RHEL's kin enable neither docker nor containerd nor the kubelet, and kubeadm starts a kubelet without
    enabling it (it warns of that). A cloud's nodes are left out: what makes them nodes starts them at each boot.
    """
    if host.kubernetes.distribution in CLOUDS:
        return NotApplicable(f"what makes this a node of {host.kubernetes.distribution} starts them at each boot")
    run = {name: unit for name in _units(host) if (unit := host.services.get(name)) and unit.active in RUNS}
    if not run:
        return NotApplicable("no unit of an engine or of a kubelet runs")
    if all(unit.wanted_by is None for unit in run.values()):
        return NotApplicable("which units start them was not read: the recording is of an older gpunode")
    off = [name for name, unit in run.items() if _off(host, name, unit)]
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


def _units(host: HostFacts) -> Iterator[str]:
    """Of the engines that root runs, and of the kubelet of a node that has joined; each once."""
    engines = [engine.unit for engine in host.runtimes if engine.active and engine.unit and not engine.user]
    yield from dict.fromkeys([*engines, *([unit_of(host)] if host.kubernetes.joined else [])])


def _off(host: HostFacts, name: str, unit: ServiceFacts) -> bool:
    asked = host.services.get(ON_DEMAND.get(name, ""))
    return unit.enabled in OFF_AT_BOOT and unit.wanted_by == () and (asked is None or asked.enabled != "enabled")
