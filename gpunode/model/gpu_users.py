"""The programs that use the GPUs, without the driver's own services."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.model.facts import HostFacts

_OWN = ("nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvlsm", "nvidia-smi")
_LAST_SYSTEM_UID = 999  # login.defs(5), SYS_UID_MAX: nvidia-persistenced has an account of its own (--user), not root's


def gpu_users(host: HostFacts) -> tuple[str, ...]:
    """ "4242 python3" for each process that holds /dev/nvidia*.

    A name in /proc/PID/comm has at most 15 characters.
    """
    return tuple(line for line in host.driver.busy if not _is_own(line, host.driver.busy_uids))


def _is_own(line: str, uids: Mapping[str, int]) -> bool:
    """Anybody names a process: by its name it is a service of the driver where an account of the system's runs it."""
    pid, _, name = line.partition(" ")
    return name.startswith(_OWN) and uids.get(pid, 0) <= _LAST_SYSTEM_UID
