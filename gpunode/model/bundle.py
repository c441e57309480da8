"""What a site without a network gets as one file, as data: the packages of one target, with their signed indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gpunode.values import dataclass

HOME = "/var/cache/gpunode/bundle"  # where a host has the bundle it was set up from; root's, and read by apt's own user
REPODATA = "repodata"  # an rpm repository's "suite": the directory of its index
VENDOR, ARCHIVE = "vendor", "archive"  # NVIDIA's repositories at the vendor's own paths, and the distribution's


@dataclass(frozen=True)
class Target:
    """What a bundle is for."""

    distribution: str  # ID of os-release: "debian"
    version: str  # VERSION_ID: "12"
    machine: str  # uname -m: "x86_64"
    driver: str  # a branch, "595", or a version, "595.91.07"

    def __str__(self) -> str:
        return f"{self.distribution}-{self.version}/{self.driver}"


@dataclass(frozen=True)
class BundledRepository:
    """One repository of which the bundle has the signed index and some packages."""

    kind: Literal["cuda", "toolkit", "archive"]
    path: str  # below the bundle: "vendor/compute/cuda/repos/debian12/x86_64", "archive/0"
    suite: str  # "/" of a flat repository, REPODATA of one for rpm
    components: tuple[str, ...]  # () of both

    @property
    def release(self) -> str:
        """Its index, which is signed or, for rpm, holds hashes of packages that are; below the bundle."""
        if self.suite == REPODATA:
            return f"{self.path}/{REPODATA}/repomd.xml"
        return f"{self.path}/InRelease" if self.suite == "/" else f"{self.path}/dists/{self.suite}/InRelease"


@dataclass(frozen=True)
class BundledFile:
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class BundledPackage:
    name: str
    version: str
    path: str  # below the bundle


@dataclass(frozen=True)
class Manifest:
    target: Target
    as_of: str  # date of the newest signed index, ISO 8601: the same packages make the same file, whenever it is made
    repositories: tuple[BundledRepository, ...]
    packages: tuple[BundledPackage, ...]
    files: Mapping[str, BundledFile]  # path below the bundle -> what it is; all but the manifest


@dataclass(frozen=True)
class Bundle:
    """A bundle's file that was read whole and is what its manifest says."""

    path: str  # on this machine
    sha256: str  # of the file
    size_bytes: int
    manifest: Manifest
    valid_until: str | None  # ISO 8601: from then on apt refuses an index in it; None: none of them ends
