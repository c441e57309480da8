"""The container engines gpunode configures, by name. A new one is a file and a line here."""

from __future__ import annotations

from gpunode.engines.base import Engine
from gpunode.engines.containerd.engine import Containerd
from gpunode.engines.crio import Crio
from gpunode.engines.docker.engine import Docker
from gpunode.engines.kubernetes.k0s import K0s
from gpunode.engines.kubernetes.k3s import K3s
from gpunode.engines.kubernetes.microk8s import Microk8s
from gpunode.engines.podman import Podman
from gpunode.errors import UnsupportedHost
from gpunode.facts.readers import ADDED

ENGINES: dict[str, Engine] = {}


def register(one: Engine) -> None:
    """Make an engine known by its name. Two of one name are a mistake in the program: ValueError."""
    if one.name in ENGINES:
        raise ValueError(f"two engines are called {one.name}")
    ENGINES[one.name] = one
    if one.reader is not None:
        ADDED.append(one.reader)


def forget(name: str) -> None:
    """Take an engine out again that was registered."""
    one = ENGINES.pop(name)
    if one.reader is not None:
        ADDED.remove(one.reader)


def engine(name: str) -> Engine:
    """The engine called `name`. Raises UnsupportedHost, which lists the names."""
    try:
        return ENGINES[name]
    except KeyError:
        raise UnsupportedHost(
            f"{name!r} is not a container runtime gpunode configures", evidence=f"it configures {', '.join(ENGINES)}"
        ) from None


for built_in in (Docker(), Containerd(), Crio(), K3s(), K3s("rke2"), K0s(), Microk8s(), Podman()):
    register(built_in)
