"""NVIDIA's modules that a setting of the host keeps from loading."""

from __future__ import annotations

from gpunode.model.facts import HostFacts

NEEDED = frozenset({"nvidia", "nvidia_uvm"})
LIFTS_BLOCK = (
    "remove the line, which grep -rE '(blacklist|install|alias)[[:space:]]+nvidia' /etc/modprobe.d /run/modprobe.d "
    "/usr/lib/modprobe.d names (prime-select nvidia takes away its own), or the option on the kernel command line"
)


def kept_from_loading(host: HostFacts) -> frozenset[str]:
    """Those that containers need and modprobe.d or the kernel command line blacklist; a loaded one stays until then."""
    return NEEDED & host.kernel.blacklisted
