"""Whether a node's kubelet starts after the device nodes of its GPUs, and the drop-in of gpunode's that sees to it.

The DRA driver describes the nodes that it finds when a pod's claim is prepared, and keeps an incomplete description
(kubernetes-sigs/dra-driver-nvidia-gpu#1380).
"""

from __future__ import annotations

from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import CDI_REFRESH_UNIT, KUBELET_UNIT, boot_drop_in

MAKES_NODES = "nvidia-modprobe"  # set-uid root, it makes the nodes that are not there
_DIRECTORIES = ("/etc/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/")


def kubelet_unit(host: HostFacts) -> str | None:
    """What runs the kubelet here, or will; None: there is none, or nothing of systemd's does."""
    if host.init not in ("systemd", "chroot"):
        return None
    of = {one.name: one.kubelet_units for one in kubernetes_distributions()}
    units = of.get(host.kubernetes.distribution or "", (KUBELET_UNIT,))
    if not (host.kubernetes.kubelet or any(one.embedded_in for one in host.runtimes)):
        return None
    return next((unit for unit in units if unit in host.services and host.services[unit].load == "loaded"), units[0])


def waits_for_nodes(host: HostFacts, unit: str) -> str | None:
    """The file by which this unit has the device nodes made before it starts; None: there is none."""
    for path in sorted(host.files):
        of_unit = any(path == f"{d}{unit}" or path.startswith(f"{d}{unit}.d/") for d in _DIRECTORIES)
        if of_unit and any(_makes_them(line) for line in (host.files[path].text or "").splitlines()):
            return path
    return None


def waits_for_cdi(host: HostFacts, unit: str) -> str | None:
    """gpunode's own drop-in where it orders this unit after nvidia-cdi-refresh, as earlier ones did; None: it does not.

    Toolkit 1.19.0 and its candidates from rc.3 on start that one after multi-user.target, which waits for this unit:
    systemd breaks the cycle by leaving one of them out at boot (NVIDIA/nvidia-container-toolkit#1735).
    """
    file = host.file(boot_drop_in(unit))
    settings = (line.strip().partition("=") for line in (file.text or "").splitlines())
    ordered = any(name.strip() == "After" and CDI_REFRESH_UNIT in value.split() for name, _, value in settings)
    return file.path if ordered else None


def unread(host: HostFacts, unit: str) -> str | None:
    """Why it cannot be told."""
    path = boot_drop_in(unit)
    return f"{path} was not read: {host.file(path).unread}" if host.file(path).unread else None


def _makes_them(line: str) -> bool:
    name, _, value = line.strip().partition("=")
    return name.strip() == "ExecStartPre" and MAKES_NODES in value
