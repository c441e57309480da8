"""The lab's only wire: a bridge in a network namespace that has no way out."""

from __future__ import annotations

from pathlib import Path

from .shell import attempt, sh

BRIDGE = "lab0"
GATEWAY = "10.77.0.1"
PREFIX_LENGTH = 24
FIRST_HOST, LAST_HOST = 10, 250


def create_bridge() -> None:
    attempt("ip", "link", "del", BRIDGE)
    # forward_delay 0: otherwise a new port is silent for 15 s, even with STP off.
    sh("ip", "link", "add", BRIDGE, "type", "bridge", "forward_delay", "0")
    sh("ip", "addr", "add", f"{GATEWAY}/{PREFIX_LENGTH}", "dev", BRIDGE)
    sh("ip", "link", "set", BRIDGE, "up")


def delete_bridge() -> None:
    attempt("ip", "link", "del", BRIDGE)


def delete_port(machine: str) -> None:
    """nspawn's end of the veth pair; a killed nspawn may leave it behind."""
    attempt("ip", "link", "del", f"vb-{machine}")


def set_link(machine: str, *, up: bool) -> None:
    """Pull the host's network cable, or put it back."""
    sh("ip", "link", "set", f"vb-{machine}", "up" if up else "down")


def forget_neighbour(address: str) -> None:
    """The next host with this address has another MAC."""
    attempt("ip", "neigh", "flush", "to", address)


def host_address(number: int) -> str:
    return f"{GATEWAY.rpartition('.')[0]}.{number}"


def has_default_route() -> bool:
    """Whether this namespace reaches beyond the bridge (destination 0.0.0.0 in /proc/net/route)."""
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    return any(line.split()[1] == "00000000" for line in routes)
