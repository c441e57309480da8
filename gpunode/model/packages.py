"""What a host's package manager says is installed, pinned and configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.model.files import FileFacts
from gpunode.values import dataclass


@dataclass(frozen=True)
class PackageVersion:
    version: str  # "595.91.07-1"
    # dpkg's abbreviation (wanted, state, "R": reinstall); "iiE": a configuration file of it is empty, as a power cut
    # leaves what dpkg does not flush. rpm: always "ii".
    status: str = "ii"

    @property
    def configured(self) -> bool:
        return self.status in ("ii", "hi")

    @property
    def half_removed(self) -> bool:
        """Selected for removal, and still there: a removal was interrupted."""
        return self.status[:1] in ("r", "p")


@dataclass(frozen=True)
class AptArchive:
    """One live entry of apt's lists: an address, a suite, and the components taken from it."""

    uri: str  # "http://mirror.example/debian"
    suite: str  # "bookworm", "bookworm-updates"
    components: tuple[str, ...]  # () for a flat repository
    signed_by: str | None = None  # its keyring, where the entry names one
    inline_key: bool = False  # the key itself stands in the entry
    # What apt wants to be the same in every entry of one address and suite: (("trusted", "yes"),), sorted.
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PackageFacts:
    manager: str | None = None  # a key of packages.registry.BACKENDS; None: none that gpunode knows
    installed: Mapping[str, PackageVersion] = field(default_factory=lambda: MappingProxyType({}))
    held: frozenset[str] = frozenset()  # pinned: apt-mark hold, versionlock, addlock, locks.d, IgnorePkg
    sources: tuple[FileFacts, ...] = ()  # apt lists and .sources, yum .repo files that name NVIDIA, and pins
    lock_holder: str | None = None  # "243 (unattended-upgr)" while another process holds the lock
    auto_upgrade: bool | None = None  # unattended-upgrades or dnf-automatic applies updates by itself
    keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # keyring path -> sha256
    primaries: Mapping[str, tuple[str, ...]] = field(  # keyring path -> its primary keys' fingerprints; (): unreadable
        default_factory=lambda: MappingProxyType({})  # only of key files that root alone can write
    )
    archives: tuple[AptArchive, ...] = ()  # what apt's lists name; () also when the probe did not read them
    residue: frozenset[str] = frozenset()  # removed packages of which dpkg keeps the configuration
    doubled: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    # name -> versions, where rpm lists more than one, as after a killed transaction
