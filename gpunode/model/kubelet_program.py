"""What runs the kubelet of a host, and of which release of Kubernetes that is: for planner and checks alike."""

from __future__ import annotations

from typing import NamedTuple

from gpunode.model.facts import HostFacts


class KubeletProgram(NamedTuple):
    """The one of this host."""

    name: str  # "kubelet"; "k3s" where a distribution has it inside
    version: str  # "1.34.2", "v1.34.2+k3s1"


def kubelet_program(host: HostFacts) -> KubeletProgram | None:
    """What it says of itself; else its package, without the package's own revision. None: no version is known."""
    embedded = next((one for one in host.runtimes if one.embedded_in), None)
    if embedded is not None and embedded.embedded_in:
        return KubeletProgram(embedded.name, embedded.embedded_in)
    if host.kubernetes.version:
        return KubeletProgram("kubelet", host.kubernetes.version)
    package = host.packages.installed.get("kubelet")
    if package is None or not package.configured:
        return None
    return KubeletProgram("kubelet", package.version.partition("-")[0])


def kubelet_version(host: HostFacts) -> str | None:
    program = kubelet_program(host)
    return program.version if program else None
