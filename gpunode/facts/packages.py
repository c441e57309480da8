"""What the package manager reports: versions, pins, sources, keys, and who holds its lock."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType

from gpunode.facts.archives import parse_archives
from gpunode.facts.wire import Sections
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.packages.base import Backend
from gpunode.packages.openpgp import primary_fingerprints
from gpunode.packages.registry import BACKENDS


def parse_packages(sections: Sections, services: Mapping[str, str]) -> PackageFacts:
    """`services`: unit -> ActiveState, for the timers that upgrade by themselves."""
    name = manager_of(sections.text("tools"))
    backend = BACKENDS[name] if name else None
    installed = _installed(backend, sections)
    auto_upgrade = sections.text("auto_upgrade")
    return PackageFacts(
        manager=name,
        installed=installed,
        residue=backend.residue(sections.text(backend.listing)) if backend else frozenset(),
        doubled=MappingProxyType(dict(backend.doubled(sections.text(backend.listing))) if backend else {}),
        held=backend.held(sections.text(backend.listing), sections.files) if backend else frozenset(),
        sources=tuple(sections.files[p] for p in sections.text("sources").splitlines() if p in sections.files),
        lock_holder=parse_lock(sections.text("package_lock")),
        auto_upgrade=backend.auto_upgrades(auto_upgrade, installed, services) if backend else None,
        keys=MappingProxyType(parse_keyrings(sections.text("keyrings"))),
        primaries=MappingProxyType(parse_key_files(sections.text("keyring_bytes"))),
        archives=parse_archives(sections.text("apt_archives")),
    )


def manager_of(tools: str) -> str | None:
    """The first of the registry's managers that is at home here, by the paths of the tools that the probe found:

    /usr/bin/dnf
    /usr/bin/dnf5
    """
    names = frozenset(path.rsplit("/", 1)[-1] for path in tools.split())
    return next((manager.name for manager in BACKENDS.values() if manager.is_at_home(names)), None)


def _installed(backend: Backend | None, sections: Sections) -> Mapping[str, PackageVersion]:
    """Of a host without a manager that gpunode knows: what any database lists."""
    managers = [backend] if backend else BACKENDS.values()
    found = (manager.installed(sections.text(manager.listing)) for manager in managers)
    return next((listed for listed in found if listed), MappingProxyType({}))


def parse_lock(text: str) -> str | None:
    """First `PID COMMAND PATH` line -> "243 (unattended-upgr)"."""
    words = text.split()
    return f"{words[0]} ({words[1]})" if len(words) >= 2 else None


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
