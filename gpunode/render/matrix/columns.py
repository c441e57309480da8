"""The columns of the fleet's page as one table, and the ways in which its hosts may be grouped. A new one is a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gpunode.render.matrix import readings
from gpunode.render.matrix.readings import Cell, Seen


class Column(NamedTuple):
    key: str  # stands in links to the page, and stays
    title: str
    about: str  # what the column says, for who asks
    read: Callable[[Seen], Cell | None] | None  # None: not known; and of the column that is read from the checks
    compared: bool = True  # with most of the hosts of its group


class Grouping(NamedTuple):
    """Hosts that are expected to be alike."""

    key: str
    title: str
    read: Callable[[Seen], str | None]  # the name of the host's group; None: it is in none


# The host's name, its standing and the number of what differs stand before these.
COLUMNS = (
    Column("failing", "Failing checks", "errors, or else warnings: what is their cause", None, False),
    Column("gpu", "GPU", "on the PCI bus, whether the driver sees them or not", readings.gpus),
    Column("system", "System", "the distribution and its release", readings.system),
    Column("kernel", "Kernel", "the one that runs; and the one that boots next, where it is another", readings.kernel),
    Column("driver", "Driver", "the module that is loaded", readings.driver),
    Column("module", "Modules", "open or proprietary kernel modules", readings.module),
    Column("libraries", "Libraries", "the version of libcuda and NVML on the loader's path", readings.libraries),
    Column("fabric", "Fabric manager", "the state of nvidia-fabricmanager.service", readings.fabric_manager),
    Column("toolkit", "Toolkit", "the NVIDIA container toolkit", readings.toolkit),
    Column("engine", "Engine", "container engines that run as root", readings.engines),
    Column("handler", "Default handler", "what starts a container that names no runtime", readings.handlers),
    Column(
        "cgroup", "cgroup driver", "of the default handler of each engine, and of the kubelet", readings.cgroup_driver
    ),
    Column("cdi", "CDI age", "days since the newest CDI specification was written", readings.cdi_age, False),
    Column("config", "Config hash", "of the engines' files; secrets do not count", readings.config_hash),
)
GROUPINGS = (
    Grouping("gpu", "the same GPU model", readings.gpu_models),
    Grouping("system", "the same system", lambda seen: seen.system or None),
    Grouping("machine", "the same machine type", lambda seen: seen.facts.product),
    Grouping("all", "all hosts", lambda seen: "all hosts"),
)
