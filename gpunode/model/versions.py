"""Versions of daemons, compared as versions, and the form of a driver's."""

from __future__ import annotations

import re

# 595.91.07, 550.163.01: what NVIDIA's driver calls itself; also inside package versions (1:595.91.07-1~deb12).
DRIVER_VERSION = r"[0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?(?![0-9.]*[0-9])"


Release = tuple[int, int]  # (1, 34)


def written(release: Release) -> str:
    """ "1.34" """
    return f"{release[0]}.{release[1]}"


def release(version: str | None) -> Release | None:
    """(major, minor) of "1.7.24", "v2.1.9+unknown", "1.6.20~ds1" or a whole `--version` line; None when not known."""
    found = re.search(r"\bv?([0-9]{1,9})\.([0-9]{1,9})", version or "")
    return (int(found[1]), int(found[2])) if found else None


def at_least(version: str | None, least: tuple[int, ...]) -> bool:
    """False for an unknown version: what is not known is not relied on. `least` may name a point release: (1, 7, 16)"""
    found = re.search(r"\bv?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?", version or "")
    return found is not None and tuple(int(number or 0) for number in found.groups()) >= least


def three_numbers(version: str) -> tuple[int, ...] | None:
    """(25, 3, 1) for "25.3.1" and "v25.3.1"; None for what has more or less than these, as a build between releases."""
    found = re.fullmatch(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})", version, re.ASCII)
    return tuple(map(int, found.groups())) if found else None


def numbers(version: str) -> tuple[int, ...]:
    """(1, 17, 8) for "1.17.8-1" and for "1.17.8~rc.1", to compare versions; () when it holds none."""
    found = re.search(r"[0-9]{1,9}(?:\.[0-9]{1,9})*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def is_before(version: str, fixed: str) -> bool:
    """Whether `version` is older than the release `fixed`, as its own candidate is, and what has no number.

    "1.19.1~rc.1-1" is what NVIDIA's toolkit calls the packages of one (its versions.mk), and nvidia-ctk prints
    "1.19.1-rc.1".
    """
    mine, other = numbers(version), numbers(fixed)
    return mine < other or (mine == other and re.search("[0-9][-~](?:alpha|beta|rc)(?![a-z])", version) is not None)


def driver_numbers(version: str | None) -> tuple[int, ...]:
    """(595, 91, 7) for "595.91.07"; () for what is no driver's version, which says nothing of newer and older."""
    found = re.fullmatch(DRIVER_VERSION, version or "", re.ASCII)
    return tuple(map(int, found[0].split("."))) if found else ()
