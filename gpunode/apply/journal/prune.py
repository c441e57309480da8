"""Runs of long ago leave /var/lib/gpunode: what their commands printed, and old bytes that no undo would read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from gpunode.apply.journal.entries import parse_journal
from gpunode.apply.journal.history import still_needed
from gpunode.apply.journal.past import read_journal
from gpunode.apply.script import SHORT_S, Host, parse_reply
from gpunode.regex import regex

KEPT_RUNS = 50
KEPT_DAYS = 30
# A directory's name begins with its run's id, 20261121T145501Z-4711. Other names are not ours to remove.
_RUN = regex(r"(\d{8}T\d{6}Z)-\d+(?=[.-]|$)")


def prune(host: Host, run_id: str, directories: Iterable[str]) -> None:
    """Remove what is `stale` in `directories` (as check_drift.sh lists them); a backup that an undo would read stays.

    Raises StepFailed when the host's disk refuses, TransportError when the host is unreachable.
    """
    if not (old := stale(directories, run_id)):
        return
    journal = read_journal(host.transport)
    # Without a journal nobody knows what the backups are for.
    old = old if journal is not None else tuple(name for name in old if name.startswith("runs/"))
    needed = still_needed(parse_journal(journal or ""))
    parse_reply(host.run("journal/prune", host.token, str(len(old)), *old, *sorted(needed), timeout_s=SHORT_S))


def stale(directories: Iterable[str], run_id: str) -> tuple[str, ...]:
    """Those of runs that began 30 days before `run_id`, or before the last 50 runs.

    "runs/20261121T145501Z-4711.1-driver.install-3" and "backup/20261121T145501Z-4711.1" belong to one run. A run's time
    is its controller's; hosts without a clock are asked nothing.
    """
    runs: dict[str, list[str]] = {}
    for directory in directories:
        if match := _RUN.match(directory.partition("/")[2]):
            runs.setdefault(match[0], []).append(directory)
    now = _RUN.match(run_id)
    limit = f"{_time(now[1]) - timedelta(days=KEPT_DAYS):%Y%m%dT%H%M%SZ}" if now else ""
    in_order = sorted(runs)
    gone = {run for run in in_order if run < limit} | set(in_order[:-KEPT_RUNS])
    return tuple(directory for run in in_order if run in gone for directory in runs[run])


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ")
