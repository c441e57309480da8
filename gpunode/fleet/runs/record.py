"""One run as it is kept while it goes on: what it is about, before the first change; each host as it begins and ends.

A line is flushed to the disk before the next act. Whoever runs the run holds a lock on the file of outcomes, which the
kernel takes back when that process is gone, however it went.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import TracebackType

from gpunode.errors import UsageError
from gpunode.fleet.run_log import new_run_id, now
from gpunode.fleet.runs.controller import this_controller
from gpunode.fleet.runs.directory import OUTCOMES, RUN, make_directory, open_file, opened_run, runs_home
from gpunode.fleet.runs.header import header_text
from gpunode.fleet.runs.outcome import begun_line, closed_line, ended_line, owing_line
from gpunode.fleet.runs.read import read_run
from gpunode.model.report import HostOutcome, Untouched
from gpunode.model.run_record import Key, PastRun, RunHeader
from gpunode.offline.output_file import write_all, write_whole
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.values import dataclass

_MOST_IN_A_SECOND = 1000  # runs of one process; each waits for the disk several times


@dataclass(frozen=True)
class About:
    """What a run is about, but for what it finds out itself: RunHeader has the words for each."""

    verb: str
    hosts: tuple[str, ...]
    user: str
    over_ssh: bool = True
    connection: tuple[tuple[str, object], ...] = ()
    spec: str | None = None
    spec_proof: str = ""
    rollout: tuple[tuple[str, object], ...] = ()
    rules: str = ""
    closed: tuple[tuple[str, str], ...] = ()  # hosts that an earlier run left closed to work, each with what opens it
    owing: Mapping[str, frozenset[Key]] = field(default_factory=dict)  # as PastRun.failing of that run


class Record:
    """Use it as a context; without `end` the run counts as one whose controller was killed."""

    def __init__(
        self, header: RunHeader, outcomes: int, complain: Callable[[str], None], work_id: str | None = None
    ) -> None:
        """`work_id`: the name that the hosts are told; None: the run's."""
        self.header = header
        self.work_id = work_id or header.id
        self._file = outcomes
        self._say, self._complained = complain, False
        self._torn = _torn(outcomes)
        self._open = True
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        return self.header.id

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._open = False  # a thread that a second Ctrl-C left at work may still come here
            os.close(self._file)

    def host_begins(self, target: str, failing: Collection[Key] | None = None) -> None:
        """Before anything of it is changed; `failing`: which checks do, where somebody looked. From any thread."""
        self._append(begun_line(target, now(), failing))

    def take_over(self, lines: Sequence[str]) -> None:
        """What an earlier run left, of all hosts at once: each append waits for the disk."""
        if lines:
            self._append("".join(lines))

    def host_closed(self, target: str, commands: Sequence[str]) -> None:
        """Before no work comes to it any more, with what lets it come again; () once it does. From any thread."""
        self._append(closed_line(target, commands, now()))

    def host_ends(self, outcome: HostOutcome) -> None:
        """From any thread. A host that the run did not come to has no line, as it is still to be done; nor has one that
        --where left out.
        """
        if outcome.untouched is not Untouched.NOT_BEGUN and not outcome.left_out:
            self._append(ended_line(outcome, now()))

    def end(self, outcomes: Sequence[HostOutcome]) -> None:
        """The run is over; hosts that it did not come to have no line."""
        codes = Counter(int(outcome.code) for outcome in outcomes)
        try:
            _write(replace(self.header, ended=now(), codes=codes))
        except UsageError as error:
            self._complain(error.evidence)

    def _append(self, line: str) -> None:
        """The host's work counts more than its line: a full disk here is said, and stops nothing."""
        with self._lock:
            if not self._open:
                return
            try:
                data = (("\n" if self._torn else "") + line).encode("utf-8", "surrogateescape")
                self._torn = True
                write_all(self._file, data)
                self._torn = False
                os.fsync(self._file)
            except OSError as error:
                self._complain(error.strerror or str(error))

    def _complain(self, why: str) -> None:
        if not self._complained:
            self._complained = True
            self._say(f"gpunode: the record of run {self.id} has gaps: {why}")


def begin(about: About, complain: Callable[[str], None]) -> Record:
    """A new run, on the disk before this returns. Raises UsageError: then nothing was touched."""
    run_id = _new_directory()
    header = RunHeader(
        run_id,
        about.verb,
        now(),
        about.user,
        this_controller(),
        about.hosts,
        about.over_ssh,
        dict(about.connection),
        about.spec,
        about.spec_proof,
        rollout=dict(about.rollout),
        rules=about.rules,
    )
    with opened_run(run_id) as directory:
        outcomes = _locked(header, directory, os.O_CREAT)
    try:
        _write(header)
    except BaseException:
        os.close(outcomes)
        raise
    record = Record(header, outcomes, complain)
    closed: dict[str, list[str]] = {}
    for target, command in about.closed:
        closed.setdefault(target, []).append(command)
    at = now()
    lines = [closed_line(target, commands, at) for target, commands in closed.items()]
    record.take_over([*lines, *(owing_line(target, failing, at) for target, failing in about.owing.items())])
    return record


def go_on(
    past: PastRun, complain: Callable[[str], None], rollout: Iterable[tuple[str, object]] | None = None
) -> Record:
    """The same run once more, with this process as its controller; `rollout`: its options from now on.

    Raises UsageError where the old one lives, or another has gone on with it since `past` was read.
    On hosts it works by another name: under the old one they would answer how the killed controller's commands ended.
    """
    header = replace(past.header, controller=this_controller(), ended="", codes={})
    header = header if rollout is None else replace(header, rollout=dict(rollout))
    outcomes = _locked_again(past)
    try:
        _refuse_changed(past)
        _write(header)
    except BaseException:
        os.close(outcomes)
        raise
    return Record(header, outcomes, complain, new_run_id())


def refuse_living(past: PastRun) -> None:
    """Raises UsageError where the run's controller is at work, or nothing says how its hosts ended."""
    if past.lives and not past.header.ended:
        raise _at_work(past.header)
    os.close(_locked_again(past))


def _locked_again(past: PastRun) -> int:
    with opened_run(past.header.id) as directory:
        try:
            return _locked(past.header, directory)
        except FileNotFoundError as error:
            raise UsageError(
                f"which hosts of run {past.header.id} have ended is not known",
                evidence=f"{runs_home() / past.header.id / OUTCOMES} is not there",
                remedy=Remedy(RepairAction.NONE, "begin a new run of its hosts with ", gpunode("setup")),
            ) from error


def _refuse_changed(past: PastRun) -> None:
    """Under the lock: while plans were made and agreed to, another may have gone on with the run and ended."""
    if replace(read_run(past.header.id), lives=past.lives) != past:
        raise UsageError(
            f"another gpunode has gone on with run {past.header.id} meanwhile",
            evidence="its record is no longer what this one read",
            remedy=Remedy(
                RepairAction.NONE, gpunode("runs", "show", past.header.id, ssh=False), " shows what is left to do"
            ),
        )


def _locked(header: RunHeader, directory: int, flags: int = 0) -> int:
    handle = open_file(OUTCOMES, directory, runs_home() / header.id, os.O_RDWR | os.O_APPEND | flags)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise _at_work(header) from error
    except OSError:
        pass  # a file system without locks: the process itself was looked for
    return handle


def _at_work(header: RunHeader) -> UsageError:
    return UsageError(
        f"run {header.id} is still at work: {header.controller}",
        evidence=f"it holds the lock on {runs_home() / header.id / OUTCOMES}",
        remedy=Remedy(
            RepairAction.WAIT, "let it end; ", gpunode("runs", "show", header.id, ssh=False), " shows how far it is"
        ),
    )


def _new_directory() -> str:
    """Its id. Two runs of one process in one second differ by a number."""
    run_id = new_run_id()
    for number in range(1, _MOST_IN_A_SECOND):
        name = run_id if number == 1 else f"{run_id}-{number}"
        if make_directory(name):
            return name
    raise UsageError(
        f"run {run_id} has no name that is free",
        evidence=f"{runs_home()} has {_MOST_IN_A_SECOND - 1} of them",
        remedy="type the same command again",
    )


def _write(header: RunHeader) -> None:
    path: Path = runs_home() / header.id / RUN
    try:
        write_whole(path, header_text(header), "the record of this run")
    except UsageError as error:
        raise UsageError(
            error.problem, evidence=error.evidence, remedy="set XDG_STATE_HOME to a directory that can be written"
        ) from error
    with opened_run(header.id) as directory:
        os.fsync(directory)  # the new name as well


def _torn(handle: int) -> bool:
    """Whether the last line has no end: the controller was killed while it wrote."""
    size = os.fstat(handle).st_size
    return size > 0 and os.pread(handle, 1, size - 1) != b"\n"
