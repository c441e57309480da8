"""What of a host's logs goes into a support bundle, and under which name there."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.facts.wire import Section, Sections
from gpunode.model.facts import HostFacts
from gpunode.values import dataclass

UNITS = (
    "docker.service", "containerd.service", "crio.service", "kubelet.service", "k3s.service", "k3s-agent.service",
    "rke2-server.service", "rke2-agent.service", "k0sworker.service", "k0scontroller.service",
    "snap.docker.dockerd.service", "snap.microk8s.daemon-containerd.service",
    "snap.microk8s.daemon-kubelite.service", "nvidia-persistenced.service",
    "nvidia-fabricmanager.service", "nvidia-imex.service", "nvidia-dcgm.service", "nvidia-cdi-refresh.service",
    "gpunode-mig.service", "gpunode-resume.service",
)  # fmt: skip


@dataclass(frozen=True)
class Log:
    """One log, or why it is not there."""

    name: str  # gpunode's own: no host chooses what a file in a bundle is called
    source: str
    text: str = ""
    missing: str = ""


def units_of(host: HostFacts) -> tuple[str, ...]:
    """Those of UNITS that this host has."""
    return tuple(unit for unit in UNITS if unit in host.services and host.services[unit].load == "loaded")


def parse_logs(sections: Sections) -> Iterator[Log]:
    """The sections of shell/probe/logs.sh; what else the answer holds is nothing of ours, and is left."""
    for unit in UNITS:
        if section := sections.commands.get(f"unit:{unit}"):
            yield _log(f"units/{unit}.log", f"journalctl -u {unit}, its newest lines", section)
    if section := sections.commands.get("kernel_extract"):
        yield _log("kernel.log", "the kernel's log: GPUs, their buses, modules, memory, hangs", section)
    for number in range(1, 4):
        if section := sections.commands.get(f"make:{number}"):
            yield _log(f"dkms/make-{number}.log", "DKMS's log of a build; its first line is the path", section)


def _log(name: str, source: str, section: Section) -> Log:
    if section.rc is None:
        return Log(name, source, missing=section.unread or "it was not read")
    if section.rc in (124, 127):
        why = "it did not come within its limit" if section.rc == 124 else "the host has no journalctl"
        return Log(name, source, missing=why)
    return Log(name, source, section.text, "" if section.text.strip() else "it is empty")
