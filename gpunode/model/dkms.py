"""What DKMS has of the driver's modules."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpunode.regex import regex
from gpunode.values import dataclass

# What DKMS calls the driver: NVIDIA's and SUSE's packages, Debian's (current, tesla-535), Ubuntu's (srv, 390).
_DRIVER_BY_DKMS = regex(r"nvidia(?:-(?:open|current|srv|tesla|legacy|grid|vgpu|\d{3})[\w.-]{0,40})?", re.A)


@dataclass(frozen=True)
class DkmsLine:
    """One line of `dkms status`."""

    module: str
    version: str
    kernel: str | None
    state: str  # "installed", "built", "added"

    @property
    def of_driver(self) -> bool:
        """It builds the driver, and not what goes beside it (nvidia-fs, nvidia-peermem)."""
        return _DRIVER_BY_DKMS.fullmatch(self.module) is not None


def builds_driver(lines: Iterable[DkmsLine]) -> bool:
    """DKMS builds the driver's modules here, and signs them with its key where Secure Boot is on."""
    return any(line.of_driver for line in lines)
