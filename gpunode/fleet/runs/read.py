"""Earlier runs, read back with bounds: a torn line is no reason to lose the others."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gpunode.errors import ExitCode, UsageError
from gpunode.fleet.run_log import new_run_id
from gpunode.fleet.runs.controller import lives
from gpunode.fleet.runs.directory import OUTCOMES, RUN, newest, open_file, opened_run, opened_runs, runs_home
from gpunode.fleet.runs.header import LARGEST_BYTES, parse_header
from gpunode.fleet.runs.outcome import LONGEST_LINE, ClosedHost, OwingHost, parse_outcome
from gpunode.model.report import HostOutcome
from gpunode.model.run_record import HostState, Key, PastHost, PastRun, RunHeader
from gpunode.remedy import Remedy, RepairAction, gpunode

LAST = "last"
# Of a host without a report: it is not as its plan was made for, or none to set up. One whose lock another gpunode has
# (8) may have lost it in the middle.
_BEFORE_ANY_CHANGE = (ExitCode.DRIFT, ExitCode.UNSUPPORTED, ExitCode.USAGE)
MOST_LINES = 1_000_000


def latest(most: int) -> tuple[list[str], int]:
    """The ids of the newest runs, and how many there are beside them. Raises UsageError."""
    with opened_runs() as runs:
        ids = [] if runs is None else newest(runs)
    return ids[:most], max(0, len(ids) - most)


def find(run_id: str, verb: str = "") -> str:
    """The id that is meant: "last" is the newest run, of `verb` where one is given.

    Raises UsageError, also where a run began in the future: the clock was set back since, and which is the last one
    cannot be told from their names.
    """
    if run_id != LAST:
        return run_id
    with opened_runs() as runs:
        for one in [] if runs is None else newest(runs):
            if not verb or read_header(one).verb == verb:
                return _not_of_the_future(one)
    raise UsageError(
        f"there is no run{f' of {verb}' if verb else ''} yet",
        evidence=f"{runs_home()} has none",
        remedy=Remedy(RepairAction.NONE, gpunode("runs", ssh=False), " lists what is kept"),
    )


def _not_of_the_future(run_id: str) -> str:
    now = new_run_id().split("-")[0]
    if run_id.split("-")[0] <= now:
        return run_id
    raise UsageError(
        "which run is the last one cannot be told",
        evidence=f"{run_id} began in the future: by this machine's clock it is {now}",
        remedy=Remedy(RepairAction.NONE, "name the run by its id; ", gpunode("runs", ssh=False), " lists them"),
    )


def read_header(run_id: str) -> RunHeader:
    """What the run was about. Raises UsageError where it is not there, not whole, or others may have written it."""
    with opened_run(run_id) as directory:
        header = _header(directory, runs_home() / run_id, trusted=True)
    if header.id != run_id:
        raise _odd(runs_home() / run_id / RUN, "it is of another run")
    return header


def read_run(run_id: str) -> PastRun:
    """The same, with its hosts."""
    header = read_header(run_id)
    alive = None if header.ended else lives(header.controller)
    with opened_run(run_id) as directory:
        past = _with_outcomes(PastRun(header), directory, runs_home() / run_id, trusted=True)
    return replace(past, lives=False if header.ended else alive)


def read_copy(path: Path) -> PastRun:
    """A run's directory that came from elsewhere: it is shown and merged, and nothing is done by it.

    Raises UsageError.
    """
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name of a directory"
        raise UsageError(
            f"{path} is no directory of a run", evidence=why or "", remedy=f"name one that holds {RUN} and {OUTCOMES}"
        ) from error
    try:
        return _with_outcomes(PastRun(_header(directory, path, trusted=False)), directory, path, trusted=False)
    finally:
        os.close(directory)


def _header(directory: int, path: Path, *, trusted: bool) -> RunHeader:
    try:
        handle = open_file(RUN, directory, path, trusted=trusted)
    except FileNotFoundError as error:
        raise _odd(
            path / RUN, "it is not there: the run never began, or an older gpunode kept its logs alone"
        ) from error
    with os.fdopen(handle, "rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise _odd(path / RUN, f"it is over {LARGEST_BYTES >> 20} MiB")
    try:
        return parse_header(data.decode("utf-8"))
    except ValueError as error:
        raise _odd(path / RUN, str(error)[:300]) from error


def _odd(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is not the record of a run",
        evidence=why,
        remedy=Remedy(RepairAction.NONE, gpunode("runs", ssh=False), " lists the runs that are kept"),
    )


def _with_outcomes(past: PastRun, directory: int, path: Path, *, trusted: bool) -> PastRun:
    """The last line of a host counts: a run that is resumed writes on."""
    found = {target: PastHost(target) for target in past.header.hosts}
    owed: dict[str, frozenset[Key] | None] = {}  # by what was done before the host was begun last
    torn = 0
    try:
        handle = open_file(OUTCOMES, directory, path, trusted=trusted)
    except FileNotFoundError:
        return replace(past, hosts=tuple(found.values()), torn=1)  # it is made before run.json, so it was taken away
    with os.fdopen(handle, "rb") as file:
        for _ in range(MOST_LINES):
            line = file.readline(LONGEST_LINE)
            if not line:
                break
            host = _parsed(line)
            if host is None or host.target not in found:
                torn += 1
                continue
            before = found[host.target]
            if isinstance(host, ClosedHost):
                found[host.target] = replace(before, closed=host.commands)
            elif isinstance(host, OwingHost):
                found[host.target] = replace(before, failing=host.failing)
            elif host.state is HostState.BEGUN and not before.done:
                owed[host.target] = before.failing
                # One that is begun again is held against what it was at first.
                failing = host.failing if before.failing is None else before.failing
                found[host.target] = replace(host, closed=before.closed, failing=failing)
            elif host.outcome is not None:
                failing = owed.get(host.target) if _untouched(host.outcome) else before.failing
                found[host.target] = replace(host, closed=before.closed, failing=None if host.done else failing)
    return replace(past, hosts=tuple(found.values()), torn=torn)


def _untouched(outcome: HostOutcome) -> bool:
    """Whether nothing was changed on it since it was begun. One that was lost may have been."""
    if outcome.run is not None:
        return not outcome.run.steps
    return outcome.untouched is not None or outcome.code in _BEFORE_ANY_CHANGE


def _parsed(line: bytes) -> PastHost | ClosedHost | OwingHost | None:
    """None for what is not a whole line: a JSON object without its end is none."""
    try:
        return parse_outcome(line.decode("utf-8"))
    except ValueError:
        return None
