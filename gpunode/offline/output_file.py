"""Files that the user asks gpunode to write: --output, --save, --record. The old file or the whole new one, mode 0600
unless it is metrics, which another user's program collects.

What stands at the path is looked at without opening it, in a directory that stays the same one until the file is there
(its descriptor), so that nobody else who may write there can put a link or a device in between.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from gpunode.errors import UsageError
from gpunode.render.clean import clean

STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a device",
}
_REMEDY = "name a file in a directory of yours"


def is_stdout(path: Path) -> bool:
    """Whether the path is one of the names of stdout; what it is connected to does not matter."""
    return os.path.normpath(path) in STDOUT


def check(path: Path, flag: str) -> None:
    """Raises UsageError where `write_whole` would, as far as that can be known before there is anything to write."""
    if is_stdout(path):
        return
    with _directory(path, flag) as (directory, name):
        if not _terminal(directory, name, path, flag) and not os.access(
            path.parent, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            raise _unwritable(path, flag, "its directory is not yours to write to")


def ended(pieces: Iterable[str]) -> Iterator[str]:
    """A text in pieces, with a newline at its end where it has none."""
    last = ""
    for piece in pieces:
        last = piece or last
        yield piece
    if not last.endswith("\n"):
        yield "\n"


def write_whole(path: Path, text: str | Iterable[str], flag: str, *, mode: int = 0o600) -> None:
    """`text`, also in pieces, into `path`, for its owner only unless `mode` has more; a terminal gets it cleaned.
    Raises UsageError: nothing was changed.
    """
    pieces = ended((text,) if isinstance(text, str) else text)

    def fill(handle: int) -> None:
        for piece in pieces:
            write_all(handle, piece.encode("utf-8", "surrogateescape"))

    with _directory(path, flag) as (directory, name):
        if _terminal(directory, name, path, flag):
            for piece in pieces:
                _to_terminal(path, clean(piece).encode("utf-8"), flag)
            return
        try:
            _replace(directory, name, fill, mode)
        except OSError as error:
            raise _unwritable(path, flag, error.strerror or str(error)) from error


def write_archive(path: Path, data: bytes, flag: str, *, mode: int = 0o600) -> None:
    """`data`, which is no text, into `path`, for its owner only unless `mode` has more. Raises UsageError: nothing was
    changed.
    """
    with _directory(path, flag) as (directory, name):
        if _terminal(directory, name, path, flag):
            raise _unwritable(path, flag, "it is a terminal, and this is no text")
        try:
            _replace(directory, name, lambda handle: write_all(handle, data), mode)
        except OSError as error:
            raise _unwritable(path, flag, error.strerror or str(error)) from error


def write_stream(path: Path, write: Callable[[IO[bytes]], None], flag: str) -> None:
    """What `write` writes into `path`, for its owner only: for what is too long to be held. Raises UsageError: nothing
    was changed.
    """

    def fill(handle: int) -> None:
        with os.fdopen(handle, "wb", closefd=False) as out:
            write(out)

    with _directory(path, flag) as (directory, name):
        if _terminal(directory, name, path, flag):
            raise _unwritable(path, flag, "it is a terminal, and this is no text")
        try:
            _replace(directory, name, fill, 0o600)
        except OSError as error:
            raise _unwritable(path, flag, error.strerror or str(error)) from error


@contextmanager
def opened_parent(
    path: Path, refused: Callable[[str], UsageError], flags: int = os.O_PATH
) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that holds `path`, and the last part of its name. Raises what `refused` makes."""
    text = os.fspath(path)
    name = os.path.basename(text)
    if "\0" in text or name in ("", ".", ".."):
        raise refused("it is no name of its own")
    try:
        directory = os.open(os.path.dirname(text) or ".", flags | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise refused(f"its directory: {error.strerror}") from error
    try:
        yield directory, name
    finally:
        os.close(directory)


def _directory(path: Path, flag: str) -> AbstractContextManager[tuple[int, str]]:
    return opened_parent(path, lambda why: _unwritable(path, flag, why))


def _terminal(directory: int, name: str, path: Path, flag: str) -> bool:
    """Whether a terminal stands there; False for a regular file or nothing. Raises UsageError for all else."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(path, flag, error.strerror or str(error)) from error
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG:
        return False
    if kind == stat.S_IFLNK:
        target = os.readlink(name, dir_fd=directory)
        raise _unwritable(path, flag, f"it is a symbolic link to {target}", remedy=f"name {target} itself")
    if kind == stat.S_IFCHR and _is_tty(directory, name):
        return True
    raise _unwritable(path, flag, f"it is {_KINDS.get(kind, 'no regular file')}")


def _is_tty(directory: int, name: str) -> bool:
    """Majors 4, 5 and 136 to 143 are terminals (Documentation/admin-guide/devices.txt); no other device is opened."""
    with contextlib.suppress(OSError):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if os.major(found.st_rdev) in (4, 5, *range(136, 144)):
            handle = _open_terminal(name, directory)
            try:
                return os.isatty(handle)
            finally:
                os.close(handle)
    return False


def _open_terminal(name: str, directory: int | None = None) -> int:
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(name, flags, dir_fd=directory)


def _to_terminal(path: Path, data: bytes, flag: str) -> None:
    try:
        handle = _open_terminal(os.fspath(path))
        try:
            os.set_blocking(handle, True)
            write_all(handle, data)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unwritable(path, flag, error.strerror or str(error)) from error


def _replace(directory: int, name: str, fill: Callable[[int], None], mode: int) -> None:
    """Write a new file next to it, flush, rename. Raises OSError, and leaves no new file then."""
    import secrets  # loads hmac and hashlib, and most results go to stdout

    new = f".gpunode-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(new, flags, 0o600, dir_fd=directory)
    try:
        try:
            os.fchmod(handle, mode)  # a umask may take away more, and an ACL of the directory give more
            fill(handle)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=directory)
        raise


def write_all(handle: int, data: bytes) -> None:
    """Whatever one write takes of it: on a disk that is just full that is a part. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _unwritable(path: Path, flag: str, why: str, *, remedy: str = _REMEDY) -> UsageError:
    return UsageError(f"{flag} {path} cannot be written", evidence=why, remedy=remedy)
