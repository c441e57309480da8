"""An rpm repository's index, as its repomd.xml and its list of packages say it; both are text of others."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from gpunode.bundles.manifest import PATH
from gpunode.errors import GpunodeError
from gpunode.model.bundle import REPODATA
from gpunode.regex import regex
from gpunode.values import dataclass

# What no manager asks for when it installs: SQLite copies of the other lists, and the changelogs.
_LEFT_OUT = regex(r".*_db|other|other_zck")
_DATA = regex(r'<data type="([a-z0-9_-]{1,40})">(.{1,4000}?)</data>', re.DOTALL | re.IGNORECASE)
_CHECKSUM = regex(r'<checksum type="sha(?:256|512)">\s*([0-9a-f]{64}|[0-9a-f]{128})\s*</checksum>')
_LOCATION = regex(r'<location href="([^"]{1,240})"\s*/>')
_NAME = regex(rb"<name>([^<]{1,200})</name>")
_VERSION = regex(rb'<version epoch="([0-9]{1,9})" ver="([^"]{1,120})" rel="([^"]{1,120})"\s*/>')
_PLACE = regex(rb'<location href="([^"<>]{1,240})"\s*/>')


@dataclass(frozen=True)
class Listed:
    """A package as its repository lists it."""

    name: str
    version: str  # "3:595.91.07-1"; without an epoch of 0
    path: str  # below the repository


def index_files(repomd: str, where: str) -> tuple[tuple[str, str], ...]:
    """(path, SHA-256 or SHA-512) of the files that make up the index, the list of packages first.

    Raises GpunodeError for what is no such file, or has no list of packages with such a hash.
    """
    found: dict[str, tuple[str, str]] = {}
    for kind, text in _DATA.findall(repomd):
        checksum, location = _CHECKSUM.search(text), _LOCATION.search(text)
        if _LEFT_OUT.fullmatch(kind):
            continue
        if not checksum or not location or not _is_index(location[1]) or kind in found:
            raise GpunodeError(f"the index of {where} cannot be kept", evidence=f"{kind} in repomd.xml: {text[:200]!r}")
        found[kind] = (location[1], checksum[1])
    if "primary" not in found:
        raise GpunodeError(f"the index of {where} lists no packages", evidence="repomd.xml has no data of type primary")
    return (found.pop("primary"), *found.values())


def _is_index(path: str) -> bool:
    return PATH.fullmatch(path) is not None and path.startswith(f"{REPODATA}/")


def listed(primary: Path, sha256: str) -> Listed | None:
    """The package with this hash in an unpacked list of packages; None where it has none."""
    with primary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        at = text.find(f'pkgid="YES">{sha256}<'.encode())
        start, end = text.rfind(b"<package ", 0, max(at, 0)), text.find(b"</package>", max(at, 0))
        if at < 0 or start < 0 or end < 0:
            return None
        name, version, place = (one.search(text, start, end) for one in (_NAME, _VERSION, _PLACE))
        if not name or not version or not place:
            return None
        epoch, ver, rel = (group.decode("utf-8", "replace") for group in version.groups())
        return Listed(
            name[1].decode("utf-8", "replace"),
            f"{'' if epoch == '0' else epoch + ':'}{ver}-{rel}",
            place[1].decode("utf-8", "replace"),
        )
