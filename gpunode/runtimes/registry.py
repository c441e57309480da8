"""The container engines gpunode configures, by name. A new one is a file and a line here."""

from __future__ import annotations

from gpunode.errors import UnsupportedHost
from gpunode.runtimes.base import Runtime
from gpunode.runtimes.containerd import Containerd
from gpunode.runtimes.crio import Crio
from gpunode.runtimes.docker import Docker
from gpunode.runtimes.k0s import K0s
from gpunode.runtimes.k3s import K3s
from gpunode.runtimes.microk8s import Microk8s
from gpunode.runtimes.podman import Podman

ALL: tuple[Runtime, ...] = (Docker(), Containerd(), Crio(), K3s(), K3s("rke2"), K0s(), Microk8s(), Podman())
RUNTIMES: dict[str, Runtime] = {runtime.name: runtime for runtime in ALL}


def engine(name: str) -> Runtime:
    """The engine called `name`. Raises UnsupportedHost, which lists the names."""
    try:
        return RUNTIMES[name]
    except KeyError:
        raise UnsupportedHost(
            f"{name!r} is not a container runtime gpunode configures", evidence=f"it configures {', '.join(RUNTIMES)}"
        ) from None
