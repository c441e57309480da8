"""The file of a bundle: a tar whose bytes depend on its content alone, and that is believed only as far as checked."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from gpunode.bundles.index_dates import date_of, first_end, iso, newest
from gpunode.bundles.manifest import LONGEST, MOST_FILES, NAME, manifest_text, parse_manifest
from gpunode.errors import GpunodeError, UsageError
from gpunode.model.bundle import Bundle, Manifest

ROOT = "gpunode-bundle"
WHOLE_BYTES = 16 << 30  # of one file: CUDA and a driver for several branches stay below
INDEX_BYTES = 1 << 20  # an InRelease; Debian's is 150 KiB
_BLOCK, _CHUNK = 512, 1 << 20


def write_bundle(manifest: Manifest, directory: Path, out: IO[bytes]) -> None:
    """The tar of `directory`, whose files the manifest lists; the manifest first, so that a reader knows what comes."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        text = manifest_text(manifest).encode()
        tar.addfile(_member(NAME, len(text)), io.BytesIO(text))
        for path, file in sorted(manifest.files.items()):
            _refuse_long(path)
            with (directory / path).open("rb") as source:
                tar.addfile(_member(path, file.size_bytes), source)


def _refuse_long(path: str) -> None:
    """Raises GpunodeError for a name that the plain form of tar has no room for."""
    try:
        _member(path, 0).tobuf(tarfile.USTAR_FORMAT)
    except ValueError as error:
        raise GpunodeError(
            f"{path} cannot be put into a bundle",
            evidence=f"{error}: a plain tar has room for 100 characters behind the last slash",
            remedy="leave the package out that it belongs to",
        ) from error


def _member(path: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(f"{ROOT}/{path}")
    member.size, member.mode = size, 0o644
    return member


def read_bundle(path: Path, now: datetime | None = None, *, however_old: bool = False) -> Bundle:
    """A bundle whose every file has the size and hash that its manifest says, and nothing else.

    Raises UsageError by name for what is not: a file that was changed, added or left out, a link, a path that leads out
    of it; GpunodeError where apt would refuse a signed index as too old (`now`: by this machine's clock), unless
    `however_old`: to be looked at.
    """
    name = str(path)
    with _opened(path) as source:
        seen = _Hashing(source)
        manifest, indexes = _checked(seen, name)
        while rest := seen.read(_CHUNK):  # what tar does not look at counts as well
            if rest.strip(b"\0"):
                raise UsageError(f"{name} is not a bundle", evidence="something stands behind its end")
    _refuse_lie(name, manifest, indexes)
    end = first_end(indexes)
    if not however_old:
        _refuse_old(name, indexes, now or datetime.now(timezone.utc))
    return Bundle(os.path.abspath(path), seen.sha256.hexdigest(), seen.size, manifest, iso(end[0]) if end else None)


class _Hashing:
    """A stream that is hashed while it is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.sha256 = hashlib.sha256()
        self.size = 0

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self.sha256.update(data)
        self.size += len(data)
        return data


def _opened(path: Path) -> IO[bytes]:
    """Raises UsageError for what is no regular file: a FIFO has no end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the bundle {path} cannot be read", evidence=why, remedy="name a file") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > WHOLE_BYTES:
        os.close(handle)  # os.fdopen takes no directory
        why = f"it is over {WHOLE_BYTES >> 30} GiB" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
        raise UsageError(f"the bundle {path} cannot be read", evidence=why, remedy="name a file")
    return os.fdopen(handle, "rb")


def _checked(source: _Hashing, name: str) -> tuple[Manifest, dict[str, str]]:
    """The manifest, and the texts of its signed indexes."""
    members = _members(source, name)
    first = next(members, None)
    if first is None or first[0] != NAME or first[1] > LONGEST:
        raise UsageError(f"{name} is not a bundle", evidence=f"its first file is not {ROOT}/{NAME}")
    text, _ = _content(source, first[1], name, LONGEST)
    manifest = parse_manifest(text.decode("utf-8", "replace"), name)
    left, indexes = dict(manifest.files), dict[str, str]()
    releases = {one.release for one in manifest.repositories}
    for path, size in members:
        wanted = left.pop(path, None)
        if wanted is None:
            raise _changed(name, path, "its manifest does not list it, or it is there twice")
        if size != wanted.size_bytes:
            raise _changed(name, path, f"it has {size} bytes, and its manifest says {wanted.size_bytes}")
        text, digest = _content(source, size, name, INDEX_BYTES if path in releases else 0)
        if digest != wanted.sha256:
            raise _changed(name, path, f"its SHA-256 is {digest}, and its manifest says {wanted.sha256}")
        if path in releases:
            indexes[path] = text.decode("utf-8", "replace")
    if missing := [*left, *sorted(releases - set(indexes))]:
        raise _changed(name, missing[0], "it is not in the file")
    return manifest, indexes


def _members(source: _Hashing, name: str) -> Iterator[tuple[str, int]]:
    """(path below the bundle, size): plain files with the plain headers of ustar alone, of a bounded number.

    tarfile's own reader takes headers of any size that announce further headers.
    """
    for _ in range(MOST_FILES + 1):
        block = source.read(_BLOCK)
        if len(block) < _BLOCK:
            raise UsageError(f"{name} is not a whole bundle", evidence="it ends before its last file")
        if not any(block):
            return
        yield _plain_file(block, name)
    raise UsageError(f"{name} is not a bundle", evidence=f"it has over {MOST_FILES} files")


def _plain_file(block: bytes, name: str) -> tuple[str, int]:
    """(path below the bundle, size) of a header that is the very one `write_bundle` gives such a file.

    In any other field two tars may see two things: GNU tar takes no directory from behind a "ustar  " (its own older
    form), tarfile does; and a stranger's mode could make a program of a file.
    """
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.TarError, ValueError) as error:
        raise UsageError(f"{name} is not a bundle", evidence=f"it is no tar: {error}") from error
    path = member.name.removeprefix(f"{ROOT}/")
    if member.type != tarfile.REGTYPE or path == member.name or not 0 <= member.size <= WHOLE_BYTES:
        kind = "a link" if member.islnk() or member.issym() else "no file of it"
        raise UsageError(f"{name} is not a bundle", evidence=f"{member.name[:120]!r} in it is {kind}")
    try:
        same = _fields_of(block) == _fields_of(_member(path, member.size).tobuf(tarfile.USTAR_FORMAT, "utf-8"))
    except ValueError:
        same = False
    if not same:
        said = f"the header of {member.name[:120]!r} in it is not as gpunode writes one"
        raise UsageError(f"{name} is not a bundle", evidence=said)
    return path, member.size


def _fields_of(header: bytes) -> bytes:
    """All of it but the checksum, which was verified, and a device's numbers, which no plain file has and Pythons fill
    in differently.
    """
    return header[:148] + header[156:329] + header[345:]


def _content(source: _Hashing, size: int, name: str, keep: int) -> tuple[bytes, str]:
    """The first `keep` bytes of a member, and the SHA-256 of it all."""
    digest, kept, left = hashlib.sha256(), b"", size
    while left:
        chunk = source.read(min(left, _CHUNK))
        if not chunk:
            raise UsageError(f"{name} is not a whole bundle", evidence="it ends within a file")
        digest.update(chunk)
        kept += chunk[: max(0, keep - len(kept))]
        left -= len(chunk)
    source.read(-size % _BLOCK)
    return kept, digest.hexdigest()


def _changed(name: str, path: str, why: str) -> UsageError:
    return UsageError(
        f"{name} was changed after it was made: {path[:240]}",
        evidence=why,
        remedy="copy it again from where it was made, and compare the SHA-256 that bundle create printed",
    )


def _refuse_lie(name: str, manifest: Manifest, indexes: dict[str, str]) -> None:
    """A plan shows the manifest's date, and nobody signs it; apt verifies the indexes'."""
    if (date := iso(newest(indexes.values()))) != manifest.as_of:
        raise UsageError(
            f"{name} is not a bundle",
            evidence=f"{NAME}: its indexes are as of {manifest.as_of}, and the newest says {date}",
        )


def _refuse_old(name: str, indexes: dict[str, str], now: datetime) -> None:
    """apt would refuse it on the host, after everything was copied there."""
    for path, text in sorted(indexes.items()):
        end = date_of(text, "Valid-Until")
        if end is not None and end < now:
            raise GpunodeError(
                f"{name} is too old: its signed index {path} was valid until {iso(end)}",
                evidence=f"Valid-Until in {path}; by this machine's clock it is {iso(now)}",
                remedy="make it again with gpunode bundle create",
            )
