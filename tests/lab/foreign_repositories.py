"""Signed repositories for dnf, zypper and pacman at the vendor's own paths; and what stands for a distribution's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .authority import Signer
from .stubs import arch, pacman, rpm, rpms, toolkit
from .stubs.deb import Package

CUDA = "developer.download.nvidia.com/compute/cuda/repos"
TOOLKIT = "nvidia.github.io/libnvidia-container/stable/rpm/x86_64"
RPM_HOST, ARCH_HOST = "rpm.lab", "arch.lab"
KEYS = {"rhel9": "D42D0685.pub", "fedora42": "D42D0685.pub", "sles15": "D42D0685.pub"}
EXTRA = f"{ARCH_HOST}/extra/os/x86_64"
ARCH_VERSIONS = ("595.58.03", "1.19.1")  # what is there until a test moves the repository on


def build_rpm(root: Path, vendor: Signer, distribution: Signer, scratch: Path) -> None:
    """CUDA's directories for EL 9, Fedora 42 and SLES 15, the toolkit's, and the distributions' own (base, crb)."""
    red_hat = [
        p for v in rpms.VERSIONS for p in rpm.build(rpms.red_hat(v), root / CUDA / "rhel9/x86_64", scratch, rpms.EPOCH)
    ]
    suse = [p for v in rpms.SUSE_VERSIONS for p in rpm.build(rpms.suse(v), root / CUDA / "sles15/x86_64", scratch)]
    tools = [p for v in toolkit.VERSIONS for p in rpm.build(rpms.toolkit_release(v), root / TOOLKIT, scratch)]
    rpm.sign(vendor, [*red_hat, *suse, *tools])
    _link(red_hat, root / CUDA / "fedora42/x86_64")
    for platform, key in KEYS.items():
        directory = root / CUDA / platform / "x86_64"
        (directory / key).write_text(vendor.armored())
        rpm.index(directory, vendor, rpms.modules(rpms.VERSIONS) if platform == "rhel9" else "")
    rpm.index(root / TOOLKIT, vendor)
    _build_archive(root / RPM_HOST, distribution, scratch)


def build_arch(root: Path, distribution: Signer) -> None:
    """One repository that holds one version of everything, as Arch Linux' own."""
    publish_arch(root / EXTRA, arch.packages(*ARCH_VERSIONS), distribution)


def publish_arch(directory: Path, packages: Sequence[Package], signer: Signer) -> None:
    """The state of the repository: what is not among `packages` is gone from its index."""
    for package in packages:
        pacman.build(package, directory, signer)
    pacman.index(directory, "extra", packages, signer)


def _build_archive(root: Path, distribution: Signer, scratch: Path) -> None:
    """dkms lies in crb, which is switched off at first; all else in base."""
    crb = [p for p in rpms.archive() if p.name == "dkms"]
    base = [p for p in rpms.archive() if p.name != "dkms"]
    for name, packages in (("crb", crb), ("base", [*base, rpms.base()])):
        rpm.sign(distribution, rpm.build(packages, root / name, scratch))
        rpm.index(root / name, distribution)
    (root / "RPM-GPG-KEY-lab").write_text(distribution.armored())


def _link(files: Sequence[Path], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        os.link(file, directory / file.name)
