"""The container engines gpunode configures, by name. A new one is a file and a line here."""

from __future__ import annotations

from gpunode.engines.base import Runtime
from gpunode.engines.containerd.engine import Containerd
from gpunode.engines.crio import Crio
from gpunode.engines.docker.engine import Docker
from gpunode.engines.kubernetes.k0s import K0s
from gpunode.engines.kubernetes.k3s import K3s
from gpunode.engines.kubernetes.microk8s import Microk8s
from gpunode.engines.podman import Podman
from gpunode.errors import UnsupportedHost

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
