"""A directory that gpunode writes whole: the old one or the new one, and never over what somebody else made or changed.

gpunode knows a directory of its own by the manifest in it, which names each of its files with its SHA-256.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_json
from gpunode.offline.output_file import opened_parent, write_all

MOST_FILES = 500  # that are looked at in a directory: an export has a few dozen
MOST_BYTES = 64 << 20  # of one of them; gpunode itself is a few MiB
SCHEMA = "gpunode.export/1"
_REMEDY = "name a directory that does not exist yet, in one of yours"
_NO_LINK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class File(Protocol):
    """What is written: `name` is relative, with / between its parts."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def mode(self) -> int: ...


def check_directory(path: Path, flag: str, manifest: str) -> None:
    """Raises UsageError where `write_directory` would, as far as that can be known before anything is written."""
    with _parent(path, flag) as (parent, name):
        _refuse_others(parent, name, path, flag, manifest)
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise _unwritable(path, flag, "its directory is not yours to write to")


def write_directory(path: Path, files: Sequence[File], flag: str, manifest: str) -> None:
    """The files as the directory `path`, in place of an earlier export. Raises UsageError: nothing was changed."""
    with _parent(path, flag) as (parent, name):
        _refuse_others(parent, name, path, flag, manifest)
        mark = secrets.token_hex(8)
        new, old = f".gpunode-{mark}", f".gpunode-{mark}.old"
        try:
            _build(parent, new, files)
            _exchange(parent, name, new, old)
        except OSError as error:
            raise _unwritable(path, flag, error.strerror or str(error)) from error
        finally:
            for left in (new, old):
                # Through the descriptor: rmtree has dir_fd from Python 3.11 on.
                shutil.rmtree(f"/proc/self/fd/{parent}/{left}", ignore_errors=True)


def _exchange(parent: int, name: str, new: str, old: str) -> None:
    """`new` gets the name; what had it is `old`, and gets it back where that fails. Raises OSError."""
    before = True
    try:
        os.rename(name, old, src_dir_fd=parent, dst_dir_fd=parent)
    except FileNotFoundError:
        before = False
    try:
        os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        if before:
            os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
        raise
    os.fsync(parent)


def _parent(path: Path, flag: str) -> AbstractContextManager[tuple[int, str]]:
    """To be flushed as well: os.fsync takes no O_PATH."""
    return opened_parent(path, lambda why: _unwritable(path, flag, why), os.O_RDONLY)


def _refuse_others(parent: int, name: str, path: Path, flag: str, manifest: str) -> None:
    """Raises UsageError where something stands there that is no export, or is one that somebody changed since."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise _unwritable(path, flag, "it is there already, and is no directory")
    try:
        handle = os.open(name, _NO_LINK | os.O_DIRECTORY, dir_fd=parent)
        try:
            why = _why_not_ours(handle, manifest)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unwritable(path, flag, error.strerror or str(error)) from error
    if why:
        raise _unwritable(path, flag, why)


def _why_not_ours(directory: int, manifest: str) -> str:
    """Why it is not an export as gpunode left it; "" where it is, or where it is empty."""
    names = list(_names(directory))
    if not names:
        return ""
    if manifest not in names:
        return f"it is there already, and holds no {manifest}: gpunode did not make it"
    listed = _listed(directory, manifest)
    if listed is None:
        return f"its {manifest} is not gpunode's"
    for name in names:
        if name != manifest and (name not in listed or _sha256(directory, name) != listed[name]):
            return f"{name[:80]!r} in it was changed or added since gpunode made it"
    return ""


def _names(directory: int, before: str = "") -> Iterator[str]:
    """Every file below, and what is no file; relative. Stops behind MOST_FILES of a directory: it is not ours then."""
    for count, entry in enumerate(os.scandir(directory)):
        if count > MOST_FILES or before.count("/") > 8:
            yield f"{before}..."
            return
        name = f"{before}{entry.name}"
        if not entry.is_dir(follow_symlinks=False):
            yield name
            continue
        inner = os.open(entry.name, _NO_LINK | os.O_DIRECTORY, dir_fd=directory)
        try:
            yield from _names(inner, f"{name}/")
        finally:
            os.close(inner)


def _listed(directory: int, manifest: str) -> Mapping[str, str] | None:
    """Name and SHA-256 of each file, by the manifest; None where it is not one of gpunode's."""
    try:
        content = read_json(_read(directory, manifest).decode("utf-8"))
        if content["schema"] != SCHEMA:
            return None
        return {name: str(one["sha256"]) for name, one in content["files"].items()}
    except (NotRead, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return None


def _sha256(directory: int, name: str) -> str:
    return hashlib.sha256(_read(directory, name)).hexdigest()


def _read(directory: int, name: str) -> bytes:
    """A regular file's bytes, MOST_BYTES at most; none of what is something else."""
    try:
        handle = os.open(name, _NO_LINK, dir_fd=directory)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(MOST_BYTES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def _build(parent: int, name: str, files: Sequence[File]) -> None:
    """A new directory with the files, on the disk when it returns. Raises OSError."""
    os.mkdir(name, 0o700, dir_fd=parent)
    top = os.open(name, _NO_LINK | os.O_DIRECTORY, dir_fd=parent)
    try:
        for one in files:
            _make_directories(top, os.path.dirname(one.name))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(one.name, flags, 0o600, dir_fd=top)
            try:
                os.fchmod(handle, one.mode)
                write_all(handle, one.data)
                os.fsync(handle)
            finally:
                os.close(handle)
        os.fchmod(top, 0o755)
        os.fsync(top)
    finally:
        os.close(top)


def _make_directories(top: int, name: str) -> None:
    if name:
        _make_directories(top, os.path.dirname(name))
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=top)


def _unwritable(path: Path, flag: str, why: str) -> UsageError:
    return UsageError(f"{flag} {path} cannot be written", evidence=why, remedy=_REMEDY)
