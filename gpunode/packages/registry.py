"""The package managers that gpunode supports, by name."""

from __future__ import annotations

from gpunode.errors import UnsupportedHost
from gpunode.packages.apt import Apt
from gpunode.packages.base import Backend
from gpunode.packages.dnf import Dnf
from gpunode.packages.pacman import Pacman
from gpunode.packages.tdnf import Tdnf
from gpunode.packages.yum import Yum
from gpunode.packages.zypper import Zypper
from gpunode.remedy import Remedy, RepairAction, setup

# A host belongs to the first that is at home there: Debian may have rpm, SUSE and Azure Linux a dnf as an extra.
_KNOWN: tuple[Backend, ...] = (
    Apt(),
    Tdnf(),
    Zypper(),
    Dnf("dnf5", ("--allowerasing", "--allow-downgrade"), ()),
    Dnf(),
    Yum(),
    Pacman(),
)
BACKENDS: dict[str, Backend] = {}


def register(manager: Backend) -> None:
    """From here on hosts with this manager are supported."""
    BACKENDS[manager.name] = manager


for _each in _KNOWN:
    register(_each)


def backend(name: str) -> Backend:
    """The backend of this name; raises UnsupportedHost for any other."""
    try:
        return BACKENDS[name]
    except KeyError:
        raise UnsupportedHost(
            f"package manager {name} is not supported by gpunode",
            evidence=f"it supports {', '.join(BACKENDS)}",
            remedy=Remedy(
                RepairAction.UPGRADE, "install driver and toolkit manually, then ", setup("--only", "runtime")
            ),
        ) from None


def goes_with_packages(path: str) -> bool:
    """Whether a file (a repository, key, pin or lock) is rolled back only together with the packages that need it."""
    directories = (directory for manager in BACKENDS.values() for directory in manager.directories)
    return path.startswith((*directories, "/usr/share/keyrings/"))
