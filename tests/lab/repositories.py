"""Signed apt repositories of stub packages, at the vendor's own paths; and one that stands for Debian's archive.

The tree is a web root: its first level is host names.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from . import foreign_repositories
from .authority import Signer, Trust
from .images import SUITES
from .shell import sh
from .storage import cache, locked
from .stubs import debian, driver, toolkit
from .stubs.deb import File, Package, build

CUDA_HOST, TOOLKIT_HOST, DEBIAN_HOST = "developer.download.nvidia.com", "nvidia.github.io", "deb.lab"
CUDA = f"{CUDA_HOST}/compute/cuda/repos"
TOOLKIT = f"{TOOLKIT_HOST}/libnvidia-container"
# Key files as NVIDIA names them; the key inside is the lab's.
PLATFORMS = {"debian12": "3bf863cc.pub", "debian13": "8793F200.pub"}
COMPONENTS = ("main", "contrib", "non-free", "non-free-firmware")
KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"


def web_root(trust: Trust) -> Path:
    """The built tree, from the cache unless its recipe changed. Not to be edited: `copy_root` gives a run its own."""
    key = _recipe_hash(trust)
    root = cache() / "repos" / key
    with locked("repos"):
        if not root.exists():
            fresh = root.with_name(f"{key}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            _build_all(fresh, trust)
            fresh.rename(root)
    return root


def copy_root(root: Path, target: Path) -> None:
    """Hard links: instant. Replace files in the copy, never write into them; `publish` and `sign` do so."""
    shutil.copytree(root, target, copy_function=os.link)


def publish(directory: Path, signer: Signer, origin: str, valid_days: float | None = None) -> None:
    """(Re)make index and signature of a flat repository; negative days have expired."""
    _replace(directory / "Packages", sh("apt-ftparchive", "packages", ".", cwd=directory))
    fields = {"Origin": origin, "Label": origin}
    _release(directory, signer, fields, valid_days)


def sign(directory: Path, signer: Signer) -> None:
    """(Re)sign a Release file, such as with a key that nobody trusts."""
    release = directory / "Release"
    signer.clearsign(release, directory / "InRelease")
    signer.detach_sign(release, directory / "Release.gpg")


def _build_all(root: Path, trust: Trust) -> None:
    scratch = root / "scratch"
    _build_cuda(root / CUDA, trust.vendor, scratch)
    _build_toolkit(root / TOOLKIT, trust.vendor, scratch)
    _build_debian(root / DEBIAN_HOST / "debian", trust.debian, scratch)
    foreign_repositories.build_rpm(root, trust.vendor, trust.debian, scratch)
    foreign_repositories.build_arch(root, trust.debian)
    shutil.rmtree(scratch)


def _build_cuda(directory: Path, vendor: Signer, scratch: Path) -> None:
    pool: Path | None = None
    for platform, key_file in PLATFORMS.items():
        repository = directory / platform / "x86_64"
        if pool is None:
            pool = repository
            _build_packages(driver.packages(), pool, scratch)
        else:
            shutil.copytree(pool, repository, copy_function=os.link, ignore=_all_but_drivers)
        vendor.export(repository / "cuda-archive-keyring.gpg")
        (repository / key_file).write_text(vendor.armored())
        keyring = (repository / "cuda-archive-keyring.gpg").read_bytes()
        _build_packages([_cuda_keyring(platform, keyring)], repository, scratch)
        publish(repository, vendor, "NVIDIA")


def _all_but_drivers(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".deb") or name.startswith("cuda-keyring")]


def _cuda_keyring(platform: str, keyring: bytes) -> Package:
    line = f"deb [signed-by={KEYRING}] https://{CUDA}/{platform}/x86_64/ /\n"
    return Package(
        "cuda-keyring",
        "1.1-1",
        architecture="all",
        files={
            KEYRING: File(keyring),
            f"/etc/apt/sources.list.d/cuda-{platform}-x86_64.list": File(line.encode()),
        },
    )


def _build_toolkit(directory: Path, vendor: Signer, scratch: Path) -> None:
    pool = directory / "stable" / "deb" / "amd64"
    _build_packages(toolkit.packages(), pool, scratch)
    publish(pool, vendor, f"https://{TOOLKIT}")
    (directory / "gpgkey").write_text(vendor.armored())
    lines = [
        f"{mark}deb https://{TOOLKIT}/{channel}/deb/$(ARCH) /\n"
        for mark, channel in (("", "stable"), ("#", "experimental"))
    ]
    (directory / "stable" / "deb" / "nvidia-container-toolkit.list").write_text("".join(lines))


def _build_debian(directory: Path, signer: Signer, scratch: Path) -> None:
    """dists/ and pool/, since the product may look at suites and components."""
    _build_packages(debian.packages(), directory / "pool", scratch)
    packages = sh("apt-ftparchive", "packages", "pool", cwd=directory)
    for suite in SUITES.values():
        dist = directory / "dists" / suite
        for component in COMPONENTS:
            index = dist / component / "binary-amd64"
            index.mkdir(parents=True)
            (index / "Packages").write_text(packages if component == "main" else "")
        fields = {
            "Origin": "Debian",
            "Label": "Debian",
            "Suite": suite,
            "Codename": suite,
            "Architectures": "amd64",
            "Components": " ".join(COMPONENTS),
        }
        _release(dist, signer, fields)


def _build_packages(packages: Iterable[Package], directory: Path, scratch: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for package in packages:
        build(package, directory, scratch)


def _release(directory: Path, signer: Signer, fields: dict[str, str], valid_days: float | None = None) -> None:
    for name in ("Release", "InRelease", "Release.gpg"):
        (directory / name).unlink(missing_ok=True)  # else they would be listed in the new one
    options = [word for key, value in fields.items() for word in ("-o", f"APT::FTPArchive::Release::{key}={value}")]
    release = sh("apt-ftparchive", *options, "release", ".", cwd=directory)
    if valid_days is not None:
        end = time.gmtime(time.time() + valid_days * 86400)
        release = f"Valid-Until: {time.strftime('%a, %d %b %Y %H:%M:%S UTC', end)}\n{release}"
    (directory / "Release").write_text(release)
    sign(directory, signer)


def _replace(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text)


def _recipe_hash(trust: Trust) -> str:
    """Changes with the stubs, this file, the kernel that the headers are for, and the keys."""
    here = Path(__file__).parent
    sources = [
        Path(__file__),
        here / "foreign_repositories.py",
        *sorted(path for path in (here / "stubs").rglob("*") if path.is_file() and path.suffix != ".pyc"),
    ]
    seal = hashlib.sha256("\n".join((os.uname().release, trust.vendor.fingerprint, trust.debian.fingerprint)).encode())
    for source in sources:
        seal.update(source.read_bytes())
    return seal.hexdigest()[:16]
