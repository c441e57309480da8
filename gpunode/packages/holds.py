"""Which packages are pinned, from the files in which each manager keeps that."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpunode.model.files import FileFacts

VERSIONLOCKS = ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list")
VERSIONLOCK5 = "/etc/dnf/versionlock.toml"
ZYPP_LOCKS = "/etc/zypp/locks"
TDNF_LOCKS = "/etc/tdnf/locks.d/gpunode.conf"
PACMAN_IGNORES = "/etc/pacman.d/gpunode-hold.conf"


def versionlocks(files: Mapping[str, FileFacts]) -> frozenset[str]:
    """Names, or the patterns where a lock is one; dnf 4, yum and dnf5 each have a file of their own."""
    names: set[str] = set()
    for path in VERSIONLOCKS:
        names.update(_versionlock(_text(files, path)))
    names.update(re.findall(r'^[ \t]*name[ \t]*=[ \t]*"([^"\n]+)"', _text(files, VERSIONLOCK5), re.MULTILINE))
    return frozenset(names)


def zypp_locks(files: Mapping[str, FileFacts]) -> frozenset[str]:
    """Blocks of `attribute: value` (locks(5)); those of packages are read here:

    type: package
    match_type: glob
    case_sensitive: on
    solvable_name: nvidia-open
    """
    names = set()
    for block in re.split(r"\n\s*\n", _text(files, ZYPP_LOCKS)):
        rows = dict(re.findall(r"^(\w+):\s*(\S+)\s*$", block, re.MULTILINE))
        if rows.get("type", "package") == "package" and "solvable_name" in rows:
            names.add(rows["solvable_name"])
    return frozenset(names)


def tdnf_locks(files: Mapping[str, FileFacts]) -> frozenset[str]:
    return frozenset(line for line in _text(files, TDNF_LOCKS).split("\n") if line and not line.startswith("#"))


def pacman_ignores(files: Mapping[str, FileFacts]) -> frozenset[str]:
    lines = re.findall(r"^IgnorePkg\s*=(.*)$", _text(files, PACMAN_IGNORES), re.MULTILINE)
    return frozenset(name for line in lines for name in line.split())


def _versionlock(text: str) -> set[str]:
    """dnf 4 writes `nvidia-driver-3:580.95.05-1.el9.*`, yum `3:nvidia-driver-580.95.05-1.el7.*`; `!` excludes."""
    words = (line.strip() for line in text.splitlines())
    live = (word for word in words if word and word[0] not in "#!")
    # The epoch is "N:" after the last but one dash, or before the name in old lists.
    return {re.sub(r"-(\d+:)?\d[^-]*-[^-]+$", "", re.sub(r"^\d+:", "", word)) for word in live}


def _text(files: Mapping[str, FileFacts], path: str) -> str:
    return files.get(path, FileFacts(path)).text or ""
