"""What containers and pods need, and runs because somebody started it: the next boot is without it.

Packages of RHEL's kin enable neither docker nor containerd nor the kubelet, and kubeadm starts a kubelet without
enabling it: it warns of that (its preflight check Service-Kubelet).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpunode.engines.kubernetes.boot_order import kubelet_unit
from gpunode.model.facts import RUNS, HostFacts, ServiceFacts
from gpunode.model.kubernetes import CLOUDS

OFF = ("disabled", "linked")  # UnitFileState of one that no link in a target's .wants names
# Unit of a daemon -> that which starts it when it is first asked for. dockerd's Requires= brings it up beside dockerd
# where it is not enabled too: that it triggers dockerd now says nothing of the next boot.
ON_DEMAND = {"docker.service": "docker.socket"}


def running(host: HostFacts) -> Mapping[str, ServiceFacts]:
    """The units of the system that run: of engines, and of the kubelet of a node that has joined its cluster."""
    return {name: unit for name in _units(host) if (unit := host.services.get(name)) and unit.active in RUNS}


def off_at_boot(host: HostFacts) -> tuple[str, ...]:
    """Those of them that systemd starts at no boot; () on a cloud's node, whose own programs start them each time."""
    if host.kubernetes.distribution in CLOUDS:
        return ()
    return tuple(name for name, unit in running(host).items() if unit.enabled in OFF and _unasked(host, name, unit))


def _units(host: HostFacts) -> Iterator[str]:
    engines = [engine.unit for engine in host.runtimes if engine.active and engine.unit]
    kubelet = kubelet_unit(host) if host.kubernetes.joined else None
    yield from dict.fromkeys([*engines, *([kubelet] if kubelet else [])])


def _unasked(host: HostFacts, name: str, unit: ServiceFacts) -> bool:
    socket = ON_DEMAND.get(name, "")
    if socket in host.services and host.services[socket].enabled == "enabled":
        return False
    return unit.wanted_by is not None and not set(unit.wanted_by) - {socket}
