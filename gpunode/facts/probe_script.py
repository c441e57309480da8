"""The text of the one probe: what a host is asked in one round trip."""

from __future__ import annotations

from gpunode import resources
from gpunode.packages.probe import probe_part

# Only the last one does anything; the others define what it calls.
SCRIPTS = (
    "daemon/query",
    "trust",
    *(f"probe/{topic}" for topic in ("wire", "host", "pci", "driver", "gpu_users", "kernel", "initramfs", "packages")),
    *(f"probe/{topic}" for topic in ("daemons", "engines", "kubernetes", "pods", "system", "topology", "run")),
)


def probe_script() -> str:
    """The text for Transport.run: one shell function called on the last line, so a truncated upload runs nothing."""
    return "\n".join((probe_part(), *map(resources.script, SCRIPTS), "gpunode_probe </dev/null\n"))
