"""Distributions: which folder, key, package names and commands stand for a release."""

from __future__ import annotations

from dataclasses import dataclass

from gpunode.catalog.rows import Row, rows
from gpunode.model.facts import OsFacts

MANAGERS = ("apt", "dnf")
SELECTIONS = ("pinning", "module", "versionlock")
CUDA_REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos"
# NVIDIA's names of uname -m in the repository's path; the driver for aarch64 servers is "sbsa".
ARCHITECTURE_FOLDERS = {"x86_64": "x86_64", "aarch64": "sbsa"}


@dataclass(frozen=True)
class CudaPackages:
    """Names in NVIDIA's CUDA repository. A branch below `first` is not offered: its packages are named otherwise."""

    first: int
    open: tuple[str, ...]
    proprietary: tuple[str, ...]
    fabric: tuple[str, ...]


@dataclass(frozen=True)
class ArchivePackages:
    """The distribution's own driver packages; {branch} and {flavour} (of the kernel) are filled in by the planner."""

    open: tuple[str, ...]
    proprietary: tuple[str, ...]
    fabric: tuple[str, ...]
    branches: tuple[int, ...]
    signed: bool  # modules come built and signed with the distribution's key: Secure Boot needs no enrolment


@dataclass(frozen=True)
class Distro:
    name: str  # "Ubuntu 24.04"
    id: str  # os-release ID
    versions: tuple[str, ...]
    codenames: tuple[str, ...]
    platform: str  # "ubuntu2404"
    manager: str
    key_file: str | None
    fingerprint: str | None  # 40 hex digits; None: not known to anybody we could ask
    select: str
    headers: tuple[str, ...]
    follow: bool  # a headers package that follows the kernel meta-package exists
    initramfs: tuple[str, ...]
    cuda: CudaPackages
    archive: ArchivePackages | None
    before: tuple[tuple[str, ...], ...]
    before_package: str | None
    source: str
    checked: str
    grade: str

    def matches(self, os: OsFacts) -> bool:
        if os.id != self.id:
            return False
        if os.version_id == "":
            # Debian testing and sid have no VERSION_ID; "trixie/sid" style names appear on both.
            names = {os.codename, *os.pretty_name.lower().replace("/", " ").split()}
            return "" in self.versions or bool(names & set(self.codenames))
        return os.version_id in self.versions or os.version_id.split(".")[0] in self.versions

    def cuda_url(self, machine: str) -> str | None:
        """The folder of this release in NVIDIA's CUDA repository; None for a machine that NVIDIA does not build for."""
        folder = ARCHITECTURE_FOLDERS.get(machine)
        return folder and f"{CUDA_REPOSITORIES}/{self.platform}/{folder}/"


def read_distros() -> tuple[Distro, ...]:
    return tuple(_distro(row) for row in rows("distros.yaml", "distros", "name"))


def _distro(row: Row) -> Distro:
    match, key, archive = row.row("match"), row.row("key"), row.maybe_row("archive")
    distro = Distro(
        name=row.text("name"),
        id=match.text("id"),
        versions=match.texts("versions"),
        codenames=match.texts("codenames"),
        platform=row.text("platform"),
        manager=row.text("manager", MANAGERS),
        key_file=key.maybe_text("file"),
        fingerprint=key.maybe_text("fingerprint"),
        select=row.text("select", SELECTIONS),
        headers=row.texts("headers"),
        follow=row.flag("follow"),
        initramfs=row.texts("initramfs"),
        cuda=_cuda(row.row("cuda")),
        archive=_archive(archive) if archive else None,
        before=row.lists("before"),
        before_package=row.maybe_text("before_package"),
        **dict(zip(("source", "checked", "grade"), row.provenance(), strict=True)),
    )
    for part in (row, match, key):
        part.done()
    return distro


def _cuda(row: Row) -> CudaPackages:
    packages = CudaPackages(row.number("first"), row.texts("open"), row.texts("proprietary"), row.texts("fabric"))
    row.done()
    return packages


def _archive(row: Row) -> ArchivePackages:
    packages = ArchivePackages(
        row.texts("open"), row.texts("proprietary"), row.texts("fabric"), row.numbers("branches"), row.flag("signed")
    )
    row.done()
    return packages
