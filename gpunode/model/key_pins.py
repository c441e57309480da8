"""What a repository's signing key is pinned by: its full fingerprint, or the checksum of its whole file.

A fingerprint is 40 upper-case hex digits (RFC 4880, 12.2). A checksum is that of the file without its Version line,
which gpg 2.0 wrote: so NVIDIA's own driver image checks a key whose fingerprint nobody publishes (rhel10).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

CHECKSUM = "sha256:"  # and 64 hex digits


def pin_kind(pin: str) -> str:
    """As in "checked by ..."."""
    return "its file's checksum" if pin.startswith(CHECKSUM) else "fingerprint"


def key_name(pins: Sequence[str], file: str) -> str:
    """The end of the first fingerprint, "3BF863CC"; else the key's file, which NVIDIA names by it: CDF6BA43.pub."""
    return PurePosixPath(file).stem.upper() if pins[0].startswith(CHECKSUM) else pins[0][-8:]
