"""What a bundle for one target has to hold: repositories with their keys, and the names that its setup will ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from gpunode.catalog.distros import Distro
from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.bundle import ARCHIVE, VENDOR, Target
from gpunode.model.driver import ModuleFlavour
from gpunode.model.facts import OsFacts
from gpunode.model.installed import PINNING
from gpunode.packages.registry import backend
from gpunode.remedy import Remedy, RepairAction, gpunode

GPUNODE = "gpunode.pyz"  # where a bundle has gpunode itself (release/zipapp.py)
DEB_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # dpkg-architecture(1)
_FORM = "its form is DISTRIBUTION-VERSION/DRIVER: debian-12/595, or debian-12/595.91.07"


@dataclass(frozen=True)
class Origin:
    """One repository that packages are taken from."""

    kind: Literal["cuda", "toolkit", "archive"]
    url: str  # ends in "/"
    suite: str  # "/" of a flat one
    components: tuple[str, ...]
    path: str  # where the bundle has it
    key_url: str = ""  # of a vendor's: its key, and the fingerprints of which it must have one
    key_path: str = ""  # where the bundle has that key
    fingerprints: tuple[str, ...] = ()
    keyring: str = ""  # of an archive: a file on this machine


@dataclass(frozen=True)
class Contents:
    target: Target
    origins: tuple[Origin, ...]
    names: tuple[str, ...]  # as apt-get install takes them
    driver: str  # pattern of the driver's versions: "595.*"


def parse_target(text: str, machine: str) -> Target:
    """ "debian-12/595"; raises UsageError that shows the form."""
    found = re.fullmatch(r"([a-z][a-z0-9._]*)-([0-9][0-9.]*)/([0-9]{3}(?:\.[0-9]{2,3}){0,2})", text.strip())
    if not found:
        raise UsageError(f"--target {text[:80]!r} is not a target", evidence=_FORM)
    if machine not in DEB_MACHINES:
        raise UsageError(f"--machine {machine[:40]!r} is not known", evidence=f"it is {' or '.join(DEB_MACHINES)}")
    return Target(found[1], found[2], machine, found[3])


def parse_archive(text: str, number: int, keyring: str) -> Origin:
    """ "http://mirror.example.org/debian bookworm main", as behind deb in sources.list. Raises UsageError."""
    words = text.split()
    right = len(words) >= 3 and re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?|file:///[^\s?#]+", words[0])
    if not right or not all(re.fullmatch(r"[A-Za-z0-9][\w.+~-]{0,60}", word) for word in words[1:]):
        raise UsageError(
            f"--archive {text[:120]!r} is not of the right form",
            evidence="it is URI SUITE COMPONENT...: 'http://mirror.example.org/debian bookworm main'",
        )
    return Origin(
        "archive", f"{words[0].rstrip('/')}/", words[1], tuple(words[2:]), f"{ARCHIVE}/{number}", keyring=keyring
    )


def contents_of(
    target: Target,
    catalog: Catalog,
    *,
    flavour: ModuleFlavour,
    toolkit: str | None,
    kernels: Sequence[str],
    more: Sequence[str],
    mirror: str | None,
    trusted: Sequence[str],
    archives: Sequence[Origin],
) -> Contents:
    """Raises UnsupportedHost for a target that NVIDIA has no packages for, or that apt is not the manager of."""
    distro = _distro(target, catalog)
    branch = int(target.driver[:3])
    names = distro.cuda.names(branch) if distro.cuda else None
    url = distro.cuda_url(target.machine)
    if names is None or url is None or not names.of(flavour):
        raise UnsupportedHost(
            f"NVIDIA's repository has no {flavour} driver {branch} for {distro.name} on {target.machine}",
            evidence=f"catalog/distros.yaml ({distro.source})",
            remedy=Remedy(RepairAction.NONE, gpunode("catalog branches", ssh=False), " lists the branches"),
        )
    wanted = [name.format(branch=branch, flavour="generic") for name in names.of(flavour)]
    wanted += [f"{PINNING}-{target.driver}"] if names.select == "pinning" else []
    tools = [
        f"{name}={toolkit}{catalog.toolkit.package_release}" if toolkit else name for name in catalog.toolkit.packages
    ]
    headers = [name for release in kernels for name in distro.headers_of(release)]
    origins = (*_vendor(distro, url, target, catalog, mirror, tuple(trusted)), *archives)
    unique = tuple(dict.fromkeys([*backend(distro.manager).key_tools, *headers, *wanted, *tools, *more]))
    return Contents(target, origins, unique, f"{target.driver}*" if "." in target.driver else f"{target.driver}.*")


def _distro(target: Target, catalog: Catalog) -> Distro:
    distro = catalog.distro(OsFacts(target.distribution, target.version))
    if distro is None:
        raise UnsupportedHost(
            f"{target.distribution} {target.version} is not a distribution gpunode installs drivers on",
            evidence="gpunode catalog distros lists those",
        )
    if backend(distro.manager).package_format != "deb":
        raise UnsupportedHost(
            f"a bundle for {distro.name} cannot be made",
            evidence=f"its packages are {distro.manager}'s, and gpunode makes bundles for apt",
            remedy="--mirror of setup takes a mirror of NVIDIA's repositories that the site has",
        )
    return distro


def _vendor(
    distro: Distro, url: str, target: Target, catalog: Catalog, mirror: str | None, trusted: tuple[str, ...]
) -> tuple[Origin, Origin]:
    """At the vendor's own paths below the bundle, so that it is a mirror as --mirror takes one."""
    tools = catalog.toolkit.apt_url.format(channel="stable").replace("$(ARCH)", DEB_MACHINES[target.machine])
    key = f"{url}{distro.key_file or 'cuda-archive-keyring.gpg'}"
    pinned = (distro.fingerprint,) if distro.fingerprint else ()
    cuda = Origin(
        "cuda", _from(url, mirror), "/", (), _place(url), _from(key, mirror), _place(key), (*pinned, *trusted)
    )
    toolkit_key = catalog.toolkit.key_url
    return cuda, Origin(
        "toolkit", _from(tools, mirror), "/", (), _place(tools), _from(toolkit_key, mirror), _place(toolkit_key),
        (catalog.toolkit.fingerprint, *trusted),
    )  # fmt: skip


def _from(url: str, mirror: str | None) -> str:
    """A mirror stands for both of NVIDIA's servers, as for setup."""
    return f"{mirror.rstrip('/')}{urlsplit(url).path}" if mirror else url


def _place(url: str) -> str:
    return f"{VENDOR}{urlsplit(url).path}".rstrip("/")
