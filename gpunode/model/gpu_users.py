"""The programs that use the GPUs, without the driver's own services."""

from __future__ import annotations

from gpunode.model.facts import HostFacts

_OWN = ("nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvlsm", "nvidia-smi")


def gpu_users(host: HostFacts) -> tuple[str, ...]:
    """ "4242 python3" for each process that holds /dev/nvidia*.

    A name in /proc/PID/comm has at most 15 characters.
    """
    return tuple(line for line in host.driver.busy if not line.partition(" ")[2].startswith(_OWN))
