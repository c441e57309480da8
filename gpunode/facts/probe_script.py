"""The text of the one probe: what a host is asked in one round trip. Loaded before almost all else: it loads little."""

from __future__ import annotations

import os

# Only the last one does anything; the others define what it calls.
SCRIPTS = (
    "daemon/query",
    "trust",
    *(f"probe/{topic}" for topic in ("wire", "host", "pci", "driver", "gpu_users", "kernel", "initramfs", "packages")),
    *(f"probe/{topic}" for topic in ("daemons", "engines", "kubernetes", "pods", "system", "topology", "run")),
)
_CALL = "gpunode_probe </dev/null\n"


def probe_script() -> str:
    """The text for Transport.run: one shell function called on the last line, so a truncated upload runs nothing."""
    from gpunode import resources
    from gpunode.packages.probe import probe_part

    return "\n".join((probe_part(), *map(resources.script, SCRIPTS), _CALL))


def usual_probe_script() -> str:
    """The same, where no package manager is registered that is not gpunode's own. Raises OSError."""
    shell = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shell")
    return "\n".join((*(_text(f"{shell}/{name}.sh") for name in ("probe/managers", *SCRIPTS)), _CALL))


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
