"""What the package manager knows: versions, holds, sources, keys, and who holds its lock."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from types import MappingProxyType

from gpunode.facts.archives import parse_archives
from gpunode.facts.holds import parse_holds
from gpunode.facts.wire import Sections
from gpunode.model.facts import PackageFacts, PackageVersion
from gpunode.packages.openpgp import primary_fingerprints

# dpkg knows these names, but nothing of the package is on the disk (dpkg-query(1), "Package status").
_GONE = ("n", "c")


def parse_packages(sections: Sections, services: Mapping[str, str]) -> PackageFacts:
    """`services`: unit -> ActiveState, for the timers that upgrade by themselves."""
    manager = manager_of(sections.text("tools"))
    installed = _installed(manager, sections)
    held = _dpkg_held(sections.text("dpkg")) if manager in ("apt", None) else parse_holds(sections.files)
    return PackageFacts(
        manager=manager,
        installed=installed,
        held=held,
        sources=tuple(sections.files[p] for p in sections.text("sources").splitlines() if p in sections.files),
        lock_holder=parse_lock(sections.text("package_lock")),
        auto_upgrade=parse_auto_upgrade(sections.text("auto_upgrade"), installed, services) if manager else None,
        keys=MappingProxyType(parse_keyrings(sections.text("keyrings"))),
        primaries=MappingProxyType(parse_key_files(sections.text("keyring_bytes"))),
        archives=parse_archives(sections.text("apt_archives")),
    )


def manager_of(tools: str) -> str | None:
    """apt where apt-get and dpkg are, pacman where it is; the rest needs rpm's database beside it.

    dnf is followed by what it links to, since dnf 4 (dnf-3) and dnf5 speak differently. A host with zypper has no dnf
    of its own, and Azure Linux' dnf is an extra beside tdnf.

        /usr/bin/dnf
        /usr/bin/dnf5
    """
    names = {path.rsplit("/", 1)[-1] for path in tools.split()}
    if {"apt-get", "dpkg-query"} <= names:
        return "apt"
    if "rpm" not in names:
        return "pacman" if "pacman" in names else None
    if "dnf" in names and "tdnf" not in names and "zypper" not in names:
        return "dnf5" if "dnf5" in names and "dnf-3" not in names else "dnf"
    return next((name for name in ("tdnf", "zypper", "yum", "pacman") if name in names), None)


def _installed(manager: str | None, sections: Sections) -> Mapping[str, PackageVersion]:
    if manager in ("apt", None):
        return parse_dpkg(sections.text("dpkg"))
    return parse_pacman(sections.text("pacman")) if manager == "pacman" else parse_rpm(sections.text("rpm"))


def parse_pacman(text: str) -> Mapping[str, PackageVersion]:
    """`pacman -Q`, name and [epoch:]version-release:

    nvidia-open-dkms 595.91.07-1
    """
    pairs = (line.split() for line in text.splitlines())
    return MappingProxyType({pair[0]: PackageVersion(pair[1]) for pair in pairs if len(pair) == 2})


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


def parse_lock(text: str) -> str | None:
    """First `PID COMMAND PATH` line -> "243 (unattended-upgr)"."""
    words = text.split()
    return f"{words[0]} ({words[1]})" if len(words) >= 2 else None


def parse_auto_upgrade(text: str, installed: Mapping[str, PackageVersion], services: Mapping[str, str]) -> bool:
    """apt: the switch is on and unattended-upgrades is there. dnf: a timer that applies is active.

    APT::Periodic::Unattended-Upgrade "1";
    apply_updates = yes
    """
    switches = re.findall(r'Unattended-Upgrade\s+"([^"]*)"', text)
    if switches:
        return switches[-1] not in ("0", "") and "unattended-upgrades" in installed
    if services.get("dnf-automatic-install.timer") == "active":
        return True
    applies = (
        re.search(r"^[ \t]*apply_updates[ \t]*=[ \t]*(yes|true|1)\b", text, re.MULTILINE | re.IGNORECASE) is not None
    )
    return applies and services.get("dnf-automatic.timer") == "active"


def parse_keyrings(text: str) -> dict[str, str]:
    """sha256sum's lines -> path: hash."""
    pairs = (line.split(None, 1) for line in text.splitlines())
    return {pair[1].lstrip("*"): pair[0] for pair in pairs if len(pair) == 2}


def parse_key_files(text: str) -> dict[str, tuple[str, ...]]:
    """Lines of a path and its bytes in base64 -> path: the primary keys' fingerprints; () for what is no keyring.

    /usr/share/keyrings/cuda-archive-keyring.gpg mQINBGJYmlEBEAC6nJmeqByeReM+MSy4...
    """
    found = {}
    for line in text.splitlines():
        path, _, encoded = line.rpartition(" ")
        try:
            found[path] = tuple(sorted(primary_fingerprints(base64.b64decode(encoded, validate=True))))
        except ValueError:  # binascii.Error is one
            found[path] = ()
    return found


def _dpkg_held(text: str) -> frozenset[str]:
    """dpkg's first status letter is what is wanted: `hi` is installed and on hold."""
    rows = (_fields(line, 4) for line in text.splitlines())
    return frozenset(row[0] for row in rows if row[3].startswith("h"))


def _fields(line: str, count: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != count:
        raise ValueError(f"a package line has {len(fields)} fields, not {count}: {line[:80]!r}")
    return fields
