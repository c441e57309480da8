"""NVIDIA's modules that a setting of the host keeps from loading."""

from __future__ import annotations

from gpunode.model.facts import HostFacts

NEEDED = frozenset({"nvidia", "nvidia_uvm"})
LIFTS_BLOCK = (
    "remove the line from its file in modprobe.d (grep -rE '(install|alias)[[:space:]]+nvidia' /etc/modprobe.d "
    "/run/modprobe.d /usr/lib/modprobe.d names it; prime-select nvidia takes away its own), or module_blacklist= from "
    "the kernel command line"
)


def kept_from_loading(host: HostFacts) -> frozenset[str]:
    """Those that containers need and that nobody loads at the next boot; a loaded one stays until then.

    A plain blacklist is none: it holds for udev and systemd-modules-load (modprobe.d(5)), and nvidia-persistenced and
    nvidia-modprobe load the driver by its name.
    """
    return NEEDED & host.kernel.barred
