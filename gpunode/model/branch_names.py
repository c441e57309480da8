"""What NVIDIA's rpm repositories call a branch, and what its packages look like to a pin."""

from __future__ import annotations

from gpunode.model.driver import ModuleFlavour

MODULE = "nvidia-driver"


def stream(branch: int, flavour: ModuleFlavour) -> str:
    """The stream of `MODULE`: "595-open"."""
    return f"{branch}-open" if flavour == "open" else f"{branch}-dkms"


def version_pattern(wanted: str) -> str:
    """NAME-VERSION of the packages of a branch or a version, as versionlock takes it: "*nvidia*595*"."""
    return f"*nvidia*{wanted}*"
