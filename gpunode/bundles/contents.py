"""What a bundle for one target has to hold: repositories with their keys, and the names that its setup will ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import urlsplit

from gpunode.catalog.distros import Distro, Names
from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.branch_names import MODULE, stream
from gpunode.model.bundle import ARCHIVE, REPODATA, VENDOR, Target
from gpunode.model.driver import ModuleFlavour
from gpunode.model.facts import OsFacts
from gpunode.model.installed import PINNING
from gpunode.packages.base import Backend
from gpunode.packages.registry import BACKENDS, backend
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.values import dataclass

GPUNODE = "gpunode.pyz"  # where a bundle has gpunode itself (release/zipapp.py)
DEB_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # dpkg-architecture(1)
_FORM = "its form is DISTRIBUTION-VERSION/DRIVER: debian-12/595, rocky-9/595, or debian-12/595.91.07"


@dataclass(frozen=True)
class Origin:
    """One repository that packages are taken from."""

    kind: Literal["cuda", "toolkit", "archive"]
    url: str  # ends in "/"
    suite: str  # "/" of a flat one, REPODATA of one for rpm
    components: tuple[str, ...]
    path: str  # where the bundle has it
    key_url: str = ""  # of a vendor's: its key, and the pins (fetch_key.sh) of which it must have one
    key_path: str = ""  # where the bundle has that key
    key_pins: tuple[str, ...] = ()
    keyring: str = ""  # of an archive: a file on this machine
    signs_packages: bool = True  # rpm: each is signed by itself; False: the index is, and has their hashes


@dataclass(frozen=True)
class Contents:
    target: Target
    origins: tuple[Origin, ...]
    names: tuple[str, ...]  # as the manager's install takes them
    driver: str  # apt: pattern of the driver's versions, "595.*"
    manager: Backend
    module: str = ""  # the stream that chooses the driver: "nvidia-driver:595-open"
    lock: str = ""  # what its versions begin with, where a lock on them chooses it: "595."
    lead: str = ""  # the package of the kernel modules, at whose driver version `follow` come
    follow: tuple[str, ...] = ()


def parse_target(text: str, machine: str) -> Target:
    """ "debian-12/595"; raises UsageError that shows the form."""
    found = re.fullmatch(r"([a-z][a-z0-9._]*)-([0-9][0-9.]*)/([0-9]{3}(?:\.[0-9]{2,3}){0,2})", text.strip())
    if not found:
        raise UsageError(f"--target {text[:80]!r} is not a target", evidence=_FORM)
    if machine not in DEB_MACHINES:
        raise UsageError(f"--machine {machine[:40]!r} is not known", evidence=f"it is {' or '.join(DEB_MACHINES)}")
    return Target(found[1], found[2], machine, found[3])


def parse_archive(text: str, number: int, keyring: str, package_format: str = "deb") -> Origin:
    """ "http://mirror.example.org/debian bookworm main", as behind deb in sources.list; for rpm the address alone.

    Raises UsageError.
    """
    words = text.split()
    if package_format == "rpm":
        return _rpm_archive(text, words, number, keyring)
    right = len(words) >= 3 and re.fullmatch(_ADDRESS, words[0])
    if not right or not all(re.fullmatch(r"[A-Za-z0-9][\w.+~-]{0,60}", word) for word in words[1:]):
        raise UsageError(
            f"--archive {text[:120]!r} is not of the right form",
            evidence="it is URI SUITE COMPONENT...: 'http://mirror.example.org/debian bookworm main'",
        )
    return Origin(
        "archive", f"{words[0].rstrip('/')}/", words[1], tuple(words[2:]), f"{ARCHIVE}/{number}", keyring=keyring
    )


_ADDRESS = r"https?://[^\s/?#@]+(/[^\s?#]*)?|file:///[^\s?#]+"


def _rpm_archive(text: str, words: Sequence[str], number: int, keyring: str) -> Origin:
    if len(words) != 1 or not re.fullmatch(_ADDRESS, words[0]) or re.search(r"[$%\\'\",]", words[0]):
        raise UsageError(
            f"--archive {text[:120]!r} is not of the right form",
            evidence="it is the URL of a directory with repodata: http://mirror.example.org/rocky/9/BaseOS/x86_64/os",
        )
    return Origin("archive", f"{words[0].rstrip('/')}/", REPODATA, (), f"{ARCHIVE}/{number}", keyring=keyring)


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
    """Raises UnsupportedHost for a target that NVIDIA has no packages for, or whose manager has no bundles."""
    distro = distro_of(target, catalog)
    manager = backend(distro.manager)
    branch = int(target.driver[:3])
    names = distro.cuda.names(branch) if distro.cuda else None
    url = distro.cuda_url(target.machine)
    if names is None or url is None or not names.of(flavour):
        raise UnsupportedHost(
            f"NVIDIA's repository has no {flavour} driver {branch} for {distro.name} on {target.machine}",
            evidence=f"catalog/distros.yaml ({distro.source})",
            remedy=Remedy(RepairAction.NONE, gpunode("catalog branches", ssh=False), " lists the branches"),
        )
    kernel = next(("-".join(release.split("-")[2:]) for release in kernels), "") or manager.default_flavour
    wanted = [name.format(branch=branch, flavour=kernel) for name in names.of(flavour)]
    chosen = _chosen(names, target, branch, flavour, wanted, distro)
    version = toolkit or catalog.toolkit.latest  # the one that setup names where nobody does
    tools = [manager.named(name, f"{version}{catalog.toolkit.package_release}") for name in catalog.toolkit.packages]
    headers = [name for release in kernels for name in distro.headers_of(release)]
    origins = (*_vendor(distro, url, target, catalog, mirror, tuple(trusted), manager), *archives)
    first = (*manager.key_tools, *manager.hold_tools)
    unique = tuple(dict.fromkeys([*first, *headers, *chosen.names, *tools, *more]))
    return replace(chosen, origins=origins, names=unique, manager=manager)


def _chosen(
    names: Names, target: Target, branch: int, flavour: ModuleFlavour, wanted: list[str], distro: Distro
) -> Contents:
    """The driver's packages and what chooses their versions, as setup does on such a host (install/branch_pin.py)."""
    exact, manager = "." in target.driver, backend(distro.manager)
    pattern = f"{target.driver}*" if exact else f"{target.driver}.*"
    found = Contents(target, (), tuple(wanted), pattern, manager)
    if names.select == "pinning":
        return replace(found, names=(*wanted, f"{PINNING}-{target.driver}"))
    if names.select == "match":
        if exact:
            raise UnsupportedHost(
                f"a bundle for {distro.name} has the newest driver of a branch, and {target.driver} is a version",
                evidence=f"its module {wanted[0]} has the distribution's version, and the rest follows it",
                remedy=f"use {target.distribution}-{target.version}/{branch}",
            )
        return replace(found, names=(), lead=wanted[0], follow=tuple(wanted[1:]))
    versioned = tuple(manager.named(name, target.driver) for name in wanted) if exact else tuple(wanted)
    if names.select == "module":
        return replace(found, names=versioned, module=f"{MODULE}:{stream(branch, flavour)}")
    return replace(found, names=versioned, lock=f"{target.driver}." if names.select == "versionlock" else "")


def distro_of(target: Target, catalog: Catalog) -> Distro:
    """Raises UnsupportedHost for a target that no bundle is made for."""
    distro = catalog.distro(OsFacts(target.distribution, target.version))
    if distro is None:
        raise UnsupportedHost(
            f"{target.distribution} {target.version} is not a distribution gpunode installs drivers on",
            evidence="gpunode catalog distros lists those",
        )
    if not backend(distro.manager).bundle_file:
        having = ", ".join(name for name, one in BACKENDS.items() if one.bundle_file)
        raise UnsupportedHost(
            f"a bundle for {distro.name} cannot be made",
            evidence=f"its packages are {distro.manager}'s, and gpunode makes bundles for {having}",
            remedy="--mirror of setup takes a mirror of NVIDIA's repositories that the site has",
        )
    return distro


def _vendor(
    distro: Distro,
    url: str,
    target: Target,
    catalog: Catalog,
    mirror: str | None,
    trusted: tuple[str, ...],
    manager: Backend,
) -> tuple[Origin, Origin]:
    """At the vendor's own paths below the bundle, so that it is a mirror as --mirror takes one."""
    of_rpm, suite = manager.package_format == "rpm", REPODATA if manager.package_format == "rpm" else "/"
    tools = (catalog.toolkit.rpm_url if of_rpm else catalog.toolkit.apt_url).format(channel="stable")
    tools = tools.replace("$(ARCH)", DEB_MACHINES[target.machine]).replace("$basearch", target.machine)
    tools = f"{tools.rstrip('/')}/"
    key = f"{url}{distro.key_file or 'cuda-archive-keyring.gpg'}"
    cuda = Origin(
        "cuda", _from(url, mirror), suite, (), _place(url), _from(key, mirror), _place(key),
        (*distro.key_pins, *trusted),
    )  # fmt: skip
    toolkit_key = catalog.toolkit.key_url
    return cuda, Origin(
        "toolkit", _from(tools, mirror), suite, (), _place(tools), _from(toolkit_key, mirror), _place(toolkit_key),
        (catalog.toolkit.fingerprint, *trusted), signs_packages=not of_rpm,
    )  # fmt: skip


def _from(url: str, mirror: str | None) -> str:
    """A mirror stands for both of NVIDIA's servers, as for setup."""
    return f"{mirror.rstrip('/')}{urlsplit(url).path}" if mirror else url


def _place(url: str) -> str:
    return f"{VENDOR}{urlsplit(url).path}".rstrip("/")
