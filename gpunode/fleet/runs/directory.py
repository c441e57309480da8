"""The directories of runs, and who may have written there: what a retry does comes out of them, as root on every host.

`$XDG_STATE_HOME/gpunode` may be a link of the user's own; below it nothing is followed, and what is opened is asked for
its owner and mode by its descriptor, so nobody can exchange it in between.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.fleet.run_log import make_private, state_home
from gpunode.fleet.runs.header import ID

RUN, OUTCOMES = "run.json", "outcomes.jsonl"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def runs_home() -> Path:
    return state_home() / "runs"


def make_directory(run_id: str) -> bool:
    """A directory for a run that is to begin, for its owner only; of those above it that is seen to.

    False where that run has one. Raises UsageError where it cannot be made, or another user could write there.
    """
    try:
        make_private(runs_home())
        with _opened(state_home(), mend=True) as home, _opened(runs_home(), home, mend=True) as runs:
            return _made(run_id, runs)
    except OSError as error:  # also FileExistsError: what stands in the place of a directory above it is none
        raise UsageError(
            f"the directory {runs_home() / run_id} of this run cannot be made",
            evidence=f"{error.filename}: {error.strerror}",
            remedy="set XDG_STATE_HOME to a directory that can be written",
        ) from error


def _made(run_id: str, runs: int) -> bool:
    try:
        os.mkdir(run_id, 0o700, dir_fd=runs)
    except FileExistsError:
        return False
    os.fsync(runs)
    return True


@contextmanager
def opened_runs() -> Iterator[int | None]:
    """A descriptor of the directory of runs; None where there is none. Raises UsageError where others may write."""
    try:
        os.lstat(runs_home())
    except OSError:
        yield None
        return
    with _opened(state_home()) as home, _opened(runs_home(), home) as runs:
        yield runs


@contextmanager
def opened_run(run_id: str) -> Iterator[int]:
    """A descriptor of that run's directory. Raises UsageError where there is none, or others may write there."""
    with opened_runs() as runs:
        if runs is None or ID.fullmatch(run_id) is None or not _is_there(run_id, runs):
            raise UsageError(f"there is no run {run_id[:80]}", evidence=f"it would be in {runs_home()}")
        with _opened(runs_home() / run_id, runs) as directory:
            yield directory


def newest(runs: int) -> list[str]:
    """The ids of runs that are kept there, the newest first. A directory without a run.json holds logs alone."""
    names = sorted((name for name in os.listdir(runs) if ID.fullmatch(name)), key=_order, reverse=True)
    return [name for name in names if _is_there(f"{name}/{RUN}", runs)]


def _order(run_id: str) -> tuple[str, list[int]]:
    """By their second, then by process; the time is of one width."""
    time, *numbers = run_id.split("-")
    return time, [int(number) for number in numbers]


def open_file(name: str, directory: int, path: Path, flags: int = os.O_RDONLY, *, trusted: bool = True) -> int:
    """A regular file in a run's directory. `trusted`: only what this user alone may write.

    Raises FileNotFoundError, and UsageError for anything that is no such file.
    """
    try:
        handle = os.open(name, flags | _FILE, 0o600, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(path / name, error.strerror or str(error)) from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path / name, "it is not a regular file")
        if trusted:
            _hold(path / name, found)
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def _opened(path: Path, above: int | None = None, *, mend: bool = False) -> Iterator[int]:
    """`mend`: what others could write to, and is this user's, is closed to them first."""
    nofollow = os.O_NOFOLLOW if above is not None else 0
    try:
        handle = os.open(path.name if above is not None else path, _DIRECTORY | nofollow, dir_fd=above)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    try:
        found = os.fstat(handle)
        if mend and found.st_uid == os.geteuid() and found.st_mode & 0o022:
            os.fchmod(handle, stat.S_IMODE(found.st_mode) & ~0o022)
            found = os.fstat(handle)
        _hold(path, found)
        yield handle
    finally:
        os.close(handle)


def _hold(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise _refused(path, f"user {found.st_uid} owns it, and gpunode runs as user {os.geteuid()}")
    if found.st_mode & 0o022:
        raise _refused(path, f"others may write to it (mode {stat.S_IMODE(found.st_mode):o})")


def _refused(path: Path, why: str) -> UsageError:
    return UsageError(
        f"what is kept of runs is not trusted: {path}",
        evidence=f"{why}; who writes there decides what is done to hosts",
        remedy="look at what is in it, then make it yours alone (chown, chmod go-w), or set XDG_STATE_HOME",
    )


def _is_there(name: str, directory: int) -> bool:
    with suppress(OSError):
        os.stat(name, dir_fd=directory, follow_symlinks=False)
        return True
    return False
