"""What is installed, held against its release: every file's size and hash, and no file besides them.

Nothing is followed out of the directory, and nothing is read that is no plain file. Python's bytecode
(`__pycache__`, which whoever may write there could write gpunode as well) is not compared: Python makes it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from gpunode import resources
from gpunode.errors import GpunodeError, UnsupportedHost
from gpunode.release.manifest import MOST_FILES, NAME, Content, Release, read_release

_BLOCK_BYTES = 1 << 20
_MOST_SEEN = 2 * MOST_FILES
_CACHE = "__pycache__"
_NOT_THERE = (errno.ENOENT, 0)  # a zipapp's loader says 0
_MANIFEST = f"gpunode/{NAME}"  # says nothing of itself


class Difference(NamedTuple):
    path: str  # below the directory that holds the package, or in the archive
    what: str  # "changed", "missing", "not of the release", ...


def released() -> tuple[Release, str]:
    """The release that this gpunode is of, and where it lies: a directory, or a zipapp.

    Raises UnsupportedHost where it is of none, GpunodeError where its RELEASE.json says no release.
    """
    place = resources.archive() or str(Path(resources.PACKAGE).resolve().parent)
    try:
        text = resources.text(NAME)
        return read_release(text), place
    except (OSError, ValueError) as error:  # NotRead and UnicodeDecodeError are ValueErrors
        if isinstance(error, OSError) and error.errno in _NOT_THERE:
            raise UnsupportedHost(
                "this gpunode is not a release: there is nothing to compare it with",
                evidence=f"there is no {place}/{_MANIFEST}",
                remedy="install one of the files of a release (docs/how-to/install.md)",
            ) from error
        raise GpunodeError(
            "this gpunode differs from every release",
            evidence=f"{place}/{_MANIFEST}: {_why(error)}",
            remedy="install it again",
        ) from error


def differences(release: Release, place: Path) -> tuple[Difference, ...]:
    """How `place`, the directory that holds the package or the zipapp itself, differs from `release`; by path."""
    try:
        found = dict(_in_archive(release, place) if place.is_file() else _in_directory(release, place))
    except (BadZipFile, OSError, NotImplementedError, RuntimeError) as error:  # the last two: a method, a password
        return (Difference(str(place), f"cannot be read: {_why(error)}"),)
    found.setdefault(_MANIFEST, "")
    lost = {path: "missing" for path in release.files if path not in found}
    odd = {path: what for path, what in found.items() if what}
    return tuple(Difference(path, what) for path, what in sorted({**lost, **odd}.items()))


def content_of(path: Path) -> Content:
    """Size and hash of a plain file. Raises OSError; ELOOP for a symbolic link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return _content(file)


def _content(file: IO[bytes]) -> Content:
    digest, size = sha256(), 0
    while block := file.read(_BLOCK_BYTES):
        digest.update(block)
        size += len(block)
    return Content(size, digest.hexdigest())


def _in_directory(release: Release, root: Path) -> Iterator[tuple[str, str]]:
    """(path, what is wrong with it, or "") of everything that lies where the release's files do."""
    waiting = [""] if release.whole else sorted({path.partition("/")[0] for path in release.files})
    for _ in range(_MOST_SEEN):
        if not waiting:
            return
        path = waiting.pop()
        try:
            what, below = _looked_at(release, root, path)
        except FileNotFoundError:
            continue  # it is missing, and so is all below it
        except OSError as error:
            what, below = f"cannot be read: {_why(error)}", []
        waiting += below
        if what is not None:
            yield path, what
    yield ".", f"more than {_MOST_SEEN} files: the rest was not looked at"


def _looked_at(release: Release, root: Path, path: str) -> tuple[str | None, list[str]]:
    """What is wrong with `path` (None: a directory, nothing by itself), and what lies in it. Raises OSError."""
    found = os.lstat(root / path)
    if stat.S_ISDIR(found.st_mode):
        names = sorted(os.listdir(root / path))
        prefix = f"{path}/" if path else ""
        return _writable(found), [f"{prefix}{name}" for name in names if name != _CACHE]
    if not stat.S_ISREG(found.st_mode):
        return "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no plain file", []
    return _writable(found) or _judged(release, path, found.st_size, lambda: content_of(root / path)), []


def _writable(found: os.stat_result) -> str | None:
    return "every user may write it" if found.st_mode & stat.S_IWOTH else None


def _in_archive(release: Release, archive: Path) -> Iterator[tuple[str, str]]:
    with ZipFile(archive) as opened:
        seen = set[str]()
        for entry in opened.infolist()[:_MOST_SEEN]:
            if entry.is_dir() or _CACHE in entry.filename.split("/"):
                continue
            twice = "twice in the archive" if entry.filename in seen else ""
            seen.add(entry.filename)
            yield (
                entry.filename,
                twice or _judged(release, entry.filename, entry.file_size, partial(_zipped, opened, entry)),
            )


def _zipped(archive: ZipFile, entry: ZipInfo) -> Content:
    with archive.open(entry) as file:  # ends with BadZipFile where it is longer than it says
        return _content(file)


def _judged(release: Release, path: str, size_bytes: int, content: Callable[[], Content]) -> str:
    """Nothing is read of a file whose size says enough."""
    if path == _MANIFEST:
        return ""
    wanted = release.files.get(path)
    if wanted is None:
        return "not of the release"
    return "" if size_bytes == wanted.size_bytes and content() == wanted else "changed"


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
