"""What each package database lists: installed packages and, where the listing has it, which of them are pinned."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpunode.model.packages import PackageVersion
from gpunode.regex import regex

# dpkg knows these names, but nothing of the package is on the disk (dpkg-query(1), "Package status").
_GONE = ("n", "c")
_SIDE_BY_SIDE = regex(r"kernel|gpg-pubkey|a?kmod-(?!.*dkms)|.*-kmp-")


def parse_dpkg(text: str) -> Mapping[str, PackageVersion]:
    """`dpkg-query -W`, name, version, architecture and status; removed packages are left out:

    nvidia-driver-cuda\t580.95.05-1\tamd64\tii
    """
    found: dict[str, PackageVersion] = {}
    for line in text.splitlines():
        name, version, architecture, status = _fields(line, 4)
        status = status.strip()
        if status[1:2] not in _GONE and not (name in found and architecture == "i386"):
            found[name] = PackageVersion(version, status)
    return MappingProxyType(found)


def dpkg_residue(text: str) -> frozenset[str]:
    """Of these packages only the configuration is left: `rc`, and `pc` where they were to be purged."""
    rows = (_fields(line, 4) for line in text.splitlines())
    return frozenset(row[0] for row in rows if row[3][1:2] == "c")


def dpkg_held(text: str) -> frozenset[str]:
    """dpkg's first status letter is what is wanted: `hi` is installed and on hold."""
    rows = (_fields(line, 4) for line in text.splitlines())
    return frozenset(row[0] for row in rows if row[3].startswith("h"))


def parse_rpm(text: str) -> Mapping[str, PackageVersion]:
    """`rpm -qa`, name, [epoch:]version-release, architecture. Kernels are installed side by side: the last line wins.

    nvidia-driver-cuda\t3:580.95.05-1.el9\tx86_64
    """
    found: dict[str, PackageVersion] = {}
    for line in text.splitlines():
        name, version, architecture = _fields(line, 3)
        if not (name in found and architecture == "i686"):
            found[name] = PackageVersion(version)
    return MappingProxyType(found)


def rpm_doubled(text: str) -> Mapping[str, tuple[str, ...]]:
    """Packages in two versions, as a killed transaction leaves them: the new one is in, the old one not yet out.

    Kernels and the modules built for them are installed side by side on purpose.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for line in text.splitlines():
        name, version, architecture = _fields(line, 3)
        if not _SIDE_BY_SIDE.match(name):
            found.setdefault((name, architecture), []).append(version)
    return MappingProxyType({name: tuple(versions) for (name, _), versions in found.items() if len(versions) > 1})


def parse_pacman(text: str) -> Mapping[str, PackageVersion]:
    """`pacman -Q`, name and [epoch:]version-release:

    nvidia-open-dkms 595.91.07-1
    """
    pairs = (line.split() for line in text.splitlines())
    return MappingProxyType({pair[0]: PackageVersion(pair[1]) for pair in pairs if len(pair) == 2})


def _fields(line: str, count: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != count:
        raise ValueError(f"a package line has {len(fields)} fields, not {count}: {line[:80]!r}")
    return fields
