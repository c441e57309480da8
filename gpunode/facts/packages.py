"""What the package manager knows: versions, holds, sources, keys, and who holds its lock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from gpunode.facts.wire import Sections
from gpunode.model.facts import FileFacts, PackageFacts, PackageVersion

VERSIONLOCK = (
    "/etc/dnf/plugins/versionlock.list",
    "/etc/dnf/versionlock.toml",
    "/etc/yum/pluginconf.d/versionlock.list",
)
# dpkg knows these names, but nothing of the package is on the disk (dpkg-query(1), "Package status").
_GONE = ("n", "c")


def parse_packages(sections: Sections, services: Mapping[str, str]) -> PackageFacts:
    """`services`: unit -> ActiveState, for the timers that upgrade by themselves."""
    manager = manager_of(sections.text("tools"))
    installed = parse_rpm(sections.text("rpm")) if manager == "dnf" else parse_dpkg(sections.text("dpkg"))
    held = parse_versionlock(sections.files) if manager == "dnf" else _dpkg_held(sections.text("dpkg"))
    return PackageFacts(
        manager=manager,
        installed=installed,
        held=held,
        sources=tuple(sections.files[p] for p in sections.text("sources").splitlines() if p in sections.files),
        lock_holder=parse_lock(sections.text("package_lock")),
        auto_upgrade=parse_auto_upgrade(sections.text("auto_upgrade"), installed, services) if manager else None,
        keys=MappingProxyType(parse_keyrings(sections.text("keyrings"))),
    )


def manager_of(tools: str) -> str | None:
    """apt where apt-get and dpkg are; dnf where dnf or yum is with rpm."""
    names = {path.rsplit("/", 1)[-1] for path in tools.split()}
    if {"apt-get", "dpkg-query"} <= names:
        return "apt"
    return "dnf" if "rpm" in names and names & {"dnf", "yum"} else None


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


def parse_versionlock(files: Mapping[str, FileFacts]) -> frozenset[str]:
    """Names locked by dnf 4 (`nvidia-driver-3:580.95.05-1.el9.*`) or dnf 5 (`name = "nvidia-driver"`)."""
    names: set[str] = set()
    for path in VERSIONLOCK:
        text = files.get(path, FileFacts(path)).text or ""
        if path.endswith(".toml"):
            names.update(re.findall(r'^\s*name\s*=\s*"([^"]+)"', text, re.MULTILINE))
            continue
        for line in text.splitlines():
            if (word := line.strip()) and word[0] not in "#!":
                # The epoch is "N:" after the last but one dash, or before the name in old lists.
                names.add(re.sub(r"-(\d+:)?\d[^-]*-[^-]+$", "", re.sub(r"^\d+:", "", word)))
    return frozenset(names)


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
    applies = re.search(r"^\s*apply_updates\s*=\s*(yes|true|1)\b", text, re.MULTILINE | re.IGNORECASE) is not None
    return applies and services.get("dnf-automatic.timer") == "active"


def parse_keyrings(text: str) -> dict[str, str]:
    """sha256sum's lines -> path: hash."""
    pairs = (line.split(None, 1) for line in text.splitlines())
    return {pair[1].lstrip("*"): pair[0] for pair in pairs if len(pair) == 2}


def _dpkg_held(text: str) -> frozenset[str]:
    """dpkg's first status letter is what is wanted: `hi` is installed and on hold."""
    rows = (_fields(line, 4) for line in text.splitlines())
    return frozenset(row[0] for row in rows if row[3].startswith("h"))


def _fields(line: str, count: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != count:
        raise ValueError(f"a package line has {len(fields)} fields, not {count}: {line[:80]!r}")
    return fields
