"""Files of this machine, with no host around them: read as facts, and replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpunode.errors import ConfigFileError, Drift
from gpunode.model.files import FileFacts
from gpunode.offline import image
from gpunode.offline.attributes import not_permitted
from gpunode.values import dataclass

LIMIT_BYTES = 4 << 20  # a daemon's configuration is a few pages; a core dump is not read into memory
REMEDIES = {
    errno.EACCES: "run gpunode as the file's owner, or as root (sudo)",
    errno.EBUSY: "the file is a mount of its own (a container's volume?): change it where it is mounted from",
    errno.EROFS: "mount the file system for writing",
    errno.ENOSPC: "make room on that file system",
}


@dataclass(frozen=True)
class Before:
    """A file as it was read; a replacement takes over its owner and compares the present bytes with these."""

    path: str  # as the user wrote it
    resolved: str  # where the bytes lie, links followed
    root: str = ""  # an image's directory, out of which no link leads; "": this machine
    data: bytes | None = None  # None: absent
    uid: int = 0
    gid: int = 0
    mode: int = 0
    names: int = 1  # hard links: a replacement takes this name alone


def read(path: str, root: str = "") -> tuple[FileFacts, Before]:
    """The file as facts, below `root`. What cannot be read is in `unread`, as it is for a host's files."""
    absent = Before(path, path, root)
    try:
        resolved = image.resolved(root, path)
        absent = Before(path, resolved, root)
        link = resolved if resolved != path and _is_link(root, path) else None
        details = os.stat(resolved)
        if not stat.S_ISREG(details.st_mode):
            why = "it is a directory" if stat.S_ISDIR(details.st_mode) else "not a regular file"
            return FileFacts(path, unread=why), absent
        if details.st_size > LIMIT_BYTES:
            return FileFacts(path, unread=f"over {LIMIT_BYTES} bytes"), absent
        data = Path(resolved).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return FileFacts(path, symlink=link), absent
    except OSError as error:
        return FileFacts(path, unread=_why(error).lower()), absent
    text, mode = data.decode("utf-8", "surrogateescape"), stat.S_IMODE(details.st_mode)
    facts = FileFacts(path, text, hashlib.sha256(data).hexdigest(), mode, link)
    return facts, Before(path, resolved, root, data, details.st_uid, details.st_gid, mode, details.st_nlink)


def _is_link(root: str, path: str) -> bool:
    directory, name = os.path.split(path)
    return os.path.islink(os.path.join(image.resolved(root, directory), name))


def replace(before: Before, text: str, *, mode: int = 0o644) -> None:
    """Write `text` where `before` was read; at any moment the file is the old or the new one.

    Owner, mode, label and symbolic link are unchanged; `mode` is for a new file, whose directory is made. Raises Drift
    when the file is no longer as it was read, ConfigFileError when the operating system refuses.
    """
    with _named_errors(before.path, before.resolved):
        new = _written_next_to(before.resolved, text.encode("utf-8", "surrogateescape"), before, mode)
        try:
            _still(before)
            _swap(new, before.resolved)
        finally:
            Path(new).unlink(missing_ok=True)


def restore(before: Before) -> None:
    """The file as it was read, after `replace` wrote it; raises as `replace` does."""
    now = read(before.path, before.root)[1]
    if before.data is not None:
        replace(now, before.data.decode("utf-8", "surrogateescape"))
        return
    with _named_errors(before.path, before.resolved):
        Path(before.resolved).unlink(missing_ok=True)
        _flush(os.path.dirname(before.resolved) or ".")


def back_up(before: Before, stamp: str) -> str | None:
    """Keep the old bytes next to the file, with its owner and mode; returns the copy's path, None for an absent file.

    In a directory such as conf.d or crio.conf.d every file may be read as configuration, so the copy goes one up.
    """
    if before.data is None:
        return None
    directory, name = os.path.split(before.resolved)
    if directory.endswith(".d"):
        directory = os.path.dirname(directory)
    kept = os.path.join(directory, f"{name}.{stamp}.bak")
    with _named_errors(kept, kept):
        _swap(_written_next_to(kept, before.data, before, 0o600), kept)
    return kept


def _written_next_to(path: str, data: bytes, before: Before, mode: int) -> str:
    """A hidden sibling of `path` with these bytes, flushed; nobody else may read it until it is whole."""
    directory = os.path.dirname(path) or "."
    _make(directory)
    # No suffix at its end: containerd reads *.toml, and Go's * takes names with a leading dot as well.
    handle, new = tempfile.mkstemp(dir=directory, prefix=f".{os.path.basename(path)}.gpunode-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _dress(handle, before, mode)
            os.fsync(handle)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
    return new


def _dress(handle: int, before: Before, mode: int) -> None:
    """Owner, mode and extended attributes (SELinux label, POSIX ACL) of the file that is replaced."""
    if before.data is None:
        os.fchmod(handle, mode)
        return
    new = os.fstat(handle)
    if (before.uid, before.gid) != (new.st_uid, new.st_gid):
        os.fchown(handle, before.uid, before.gid)
    os.fchmod(handle, before.mode)
    # A label or ACL that may not be copied is set by the policy, as for any file that an editor saves.
    with contextlib.suppress(OSError):
        for name in os.listxattr(before.resolved):
            os.setxattr(handle, name, os.getxattr(before.resolved, name))


def _still(before: Before) -> None:
    """Raises Drift when somebody else wrote the file since it was read."""
    now = read(before.path, before.root)[1]
    if (now.resolved, now.data) != (before.resolved, before.data):
        raise Drift(
            f"{before.path} was changed by somebody else meanwhile; gpunode did not change it",
            evidence="its bytes are not those that were read a moment ago",
            remedy="run gpunode again: it starts from the file as it is now",
        )


def _swap(new: str, path: str) -> None:
    os.replace(new, path)
    _flush(os.path.dirname(path) or ".")


def _make(directory: str) -> None:
    """The directory and those above it, flushed so that a power failure does not undo them."""
    if os.path.isdir(directory):
        return
    above = os.path.dirname(directory) or "."
    _make(above)
    os.mkdir(directory, 0o755)
    _flush(above)


def _flush(directory: str) -> None:
    """fsync of a directory: a rename that was never flushed is lost in a power failure."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _named_errors(path: str, resolved: str) -> Iterator[None]:
    """What the operating system refuses, as a sentence about `path`."""
    try:
        yield
    except OSError as error:
        raise ConfigFileError(
            f"{path} cannot be written: {_why(error)}",
            evidence="the file is unchanged",
            remedy=_remedy(resolved, error.errno or 0),
        ) from error


def _remedy(resolved: str, number: int) -> str:
    if number == errno.EPERM:
        return not_permitted(resolved)
    if number == errno.EACCES and os.geteuid() == 0:
        return "root is refused here: a security module (ausearch -m avc), or a network file system, keeps it"
    return REMEDIES.get(number, "name a file in a directory that can be written, with --config")


def _why(error: OSError) -> str:
    return error.strerror or str(error)
