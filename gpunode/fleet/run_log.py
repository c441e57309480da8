"""What happened, kept on the controller: $XDG_STATE_HOME/gpunode/runs/<time>/<host>.jsonl, for its owner only."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import traceback
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.masking import masked
from gpunode.render.clean import clean, clean_json


def state_home() -> Path:
    """Where state belongs by XDG; relative values are to be ignored (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return (Path(named) if named.startswith("/") else Path.home() / ".local" / "state") / "gpunode"


def now() -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def new_run_id() -> str:
    """20261121T145501Z-4711: sorts by time, and two runs of one second differ by process."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{os.getpid()}"


def make_private(directory: Path) -> None:
    """A directory of runs and those above it up to the state's own, for their owner only. Raises OSError."""
    home = state_home()
    # Each by itself: what mkdir makes above a directory has the umask's mode alone, and under ~/.local is code as well.
    above = [path for path in reversed(home.parents) if not path.exists()]
    for path in (*above, home, home / "runs", directory):
        path.mkdir(mode=0o700, exist_ok=True)


class RunLog:
    """One directory a run, one file a host; lines are written whole, from any thread."""

    def __init__(self, run_id: str, complain: Callable[[str], None]) -> None:
        self.directory = state_home() / "runs" / run_id
        self._lock = threading.Lock()
        self._say, self._complained = complain, False
        try:
            make_private(self.directory)
        except OSError as error:
            raise UsageError(
                f"the run log {self.directory} cannot be made",
                evidence=error.strerror or str(error),
                remedy="set XDG_STATE_HOME to a directory that can be written",
            ) from error

    def write(self, target: str, line: str) -> None:
        """Append one line to the host's file, masked and cleaned. On a full disk here the line is lost, no more."""
        name = re.sub(r"[^A-Za-z0-9._@-]", "_", target).lstrip(".") or "_"
        path = self.directory / f"{name}{'_' * (name == 'outcomes')}.jsonl"  # outcomes.jsonl is the run's own
        with self._lock:
            try:
                handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                with os.fdopen(handle, "a", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(clean_json(masked(line, "jsonl")))
            except OSError as error:
                self._complain(path, error)

    def _complain(self, path: Path, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            self._say(f"gpunode: the run log {path} has gaps: {error.strerror}")


def save_crash(error: Exception) -> Path | None:
    """The traceback of a fault of ours in a file; None when neither the state directory nor /tmp takes it."""
    text = "".join(traceback.format_exception(error))
    runs = state_home() / "runs"
    for directory in (runs, Path(tempfile.gettempdir())):
        try:
            if directory == runs:
                make_private(runs)
            handle, name = tempfile.mkstemp(dir=directory, prefix=f"crash-{new_run_id()}-", suffix=".log")
        except OSError:
            continue  # the next directory; the caller reports it when there is none
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(clean(masked(text, "lines")))
        return Path(name)
    return None
