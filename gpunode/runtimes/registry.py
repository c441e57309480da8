"""The container engines gpunode configures, by name. A new one is a file and a line here."""

from __future__ import annotations

from gpunode.errors import UnsupportedHost
from gpunode.runtimes.base import Runtime
from gpunode.runtimes.containerd import Containerd
from gpunode.runtimes.docker import Docker

RUNTIMES: dict[str, Runtime] = {runtime.name: runtime for runtime in (Docker(), Containerd())}


def engine(name: str) -> Runtime:
    """The engine called `name`. Raises UnsupportedHost, which lists the names."""
    try:
        return RUNTIMES[name]
    except KeyError:
        raise UnsupportedHost(
            f"{name!r} is not a container runtime gpunode configures", evidence=f"it configures {', '.join(RUNTIMES)}"
        ) from None
