"""Daemon versions, compared as versions."""

from __future__ import annotations

import re


def release(version: str | None) -> tuple[int, int] | None:
    """(major, minor) of "1.7.24", "v2.1.9+unknown", "1.6.20~ds1" or a whole `--version` line; None when not known."""
    found = re.search(r"\bv?([0-9]{1,9})\.([0-9]{1,9})", version or "")
    return (int(found[1]), int(found[2])) if found else None


def at_least(version: str | None, least: tuple[int, int]) -> bool:
    """False for an unknown version: what is not known is not relied on."""
    have = release(version)
    return have is not None and have >= least
