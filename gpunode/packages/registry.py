"""The package managers gpunode knows, by name."""

from __future__ import annotations

from gpunode.errors import UnsupportedHost
from gpunode.packages.apt import Apt
from gpunode.packages.base import Backend
from gpunode.packages.dnf import Dnf

BACKENDS: dict[str, Backend] = {"apt": Apt(), "dnf": Dnf()}


def backend(name: str) -> Backend:
    """The backend of this name; raises UnsupportedHost for any other."""
    try:
        return BACKENDS[name]
    except KeyError:
        raise UnsupportedHost(
            f"package manager {name} is not one gpunode works with",
            evidence=f"it works with {', '.join(BACKENDS)}",
            remedy="install driver and toolkit by hand, then gpunode setup --only runtime",
        ) from None
