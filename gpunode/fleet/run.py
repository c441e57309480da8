"""Many hosts side by side: each host's failure stays its own, and no host is ever missing from the report."""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from gpunode.errors import ExitCode, GpunodeError, HostBusy
from gpunode.model.report import FleetReport, HostOutcome, Untouched
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.wording import with_its_name

DEFAULT_FORKS = 50
STOPPED = "the run was stopped"
DECLINED = "the question was answered with no"
_STACK_BYTES = 1024 * 1024  # the default of 8 MiB a thread, times hundreds, is address space for nothing
# A connection leaves cycles of 25 KB, and Python would look for them after some 400. We do after so many
# hosts, and where many have ended after a sixteenth of those: to look goes through all that is kept of them.
_GARBAGE_OF = 32
_GARBAGE_SHARE = 16
_M_ARENA_MAX = -8  # malloc.h
_CHECK_S = 0.2  # a Ctrl-C that the kernel gives to another thread wakes nobody: check for it this often

Target = TypeVar("Target")  # str() of it is how the user named the host


def run_fleet(
    targets: Sequence[Target],
    work: Callable[[Target], HostOutcome],
    *,
    forks: int = DEFAULT_FORKS,
    on_done: Callable[[HostOutcome], None],
    stop: threading.Event | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> FleetReport:
    """Run `work` on every target, at most `forks` at once; outcomes in the order of `targets`.

    `on_done` is called in this thread as hosts finish. Ctrl-C sets `stop` (which `work` may check between its
    steps) and calls `on_stop` at once: no new host begins and those at work come to their end; a second Ctrl-C leaves
    without them. Hosts that never began, or were left at work, have that as their outcome.
    """
    begin = time.monotonic()
    stop = stop or threading.Event()
    waiting: queue.SimpleQueue[tuple[int, Target]] = queue.SimpleQueue()
    for numbered in enumerate(targets):
        waiting.put(numbered)
    outcomes: dict[int, HostOutcome] = {}  # place -> outcome; written by the workers
    ended: list[HostOutcome] = []  # the same, as they ended
    started: set[int] = set()
    news = threading.Event()

    def worker() -> None:
        while True:
            try:
                place, target = waiting.get_nowait()
            except queue.Empty:
                return
            started.add(place)
            outcome = outcomes[place] = not_begun(target) if stop.is_set() else outcome_of(target, work)
            ended.append(outcome)
            news.set()

    threads = _Threads(worker, max(1, min(forks, len(targets))))
    told = _Told(ended, on_done)
    answered = False  # the first Ctrl-C
    # Ctrl-C may strike at any line here, so nothing is taken out of a queue on the way: it could be lost.
    while len(told) < len(targets):
        try:
            if stop.is_set() and not answered:
                answered = True
                on_stop()
            threads.start()
            news.wait(_CHECK_S)
            news.clear()
            told.catch_up()
        except KeyboardInterrupt:
            if stop.is_set():
                break
            stop.set()
    hosts = (outcomes.get(place) or _unfinished(target, began=place in started) for place, target in enumerate(targets))
    return FleetReport(tuple(hosts), time.monotonic() - begin)


def outcome_of(target: Target, work: Callable[[Target], HostOutcome]) -> HostOutcome:
    """What `work` answers, or the error that it raised as this host's outcome. Raises nothing."""
    try:
        return work(target)
    except GpunodeError as error:
        return HostOutcome(
            str(target),
            error.code,
            problem=with_its_name(str(target), error.problem),
            evidence=error.evidence,
            remedy=error.remedy,
            check_id=error.check,
            untouched=Untouched.SKIPPED if isinstance(error, HostBusy) else None,
        )
    except Exception as error:
        # A fault of ours on one host must not take the others' reports with it.
        return HostOutcome(
            str(target),
            ExitCode.FAILED,
            problem=f"internal error: {type(error).__name__}: {error}".splitlines()[0],
            evidence=_place(error),
            remedy=Remedy(RepairAction.SUPPORT, "this is a fault in gpunode: please report it with the line above"),
        )


def _place(error: Exception) -> str:
    """File, line and function where it came from: a report can be made of it, and it is one line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"


def not_begun(target: Target, why: str = STOPPED) -> HostOutcome:
    """The outcome of a host that the run did not come to."""
    return HostOutcome(
        str(target),
        ExitCode.FAILED,
        problem=f"not begun: {why}",
        remedy=Remedy(RepairAction.WAIT, "run it again"),
        untouched=Untouched.NOT_BEGUN,
    )


def declined(report: FleetReport, targets: Container[str]) -> FleetReport:
    """The plans of `targets` were shown, and the question was answered with no: none of them was begun."""
    return replace(report, hosts=tuple(_declined(host) if host.target in targets else host for host in report.hosts))


def _declined(host: HostOutcome) -> HostOutcome:
    none = not_begun(host.target, DECLINED)
    return replace(host, code=none.code, problem=none.problem, remedy=none.remedy, untouched=none.untouched)


def _unfinished(target: Target, *, began: bool) -> HostOutcome:
    if not began:
        return not_begun(target)
    return HostOutcome(
        str(target),
        ExitCode.FAILED,
        problem="left at work: the run was stopped twice",
        remedy=Remedy(
            RepairAction.WAIT, "run it again: what was begun is found on the host and finished or rolled back"
        ),
    )


def _share_one_heap() -> None:
    """glibc gives threads that meet in malloc a heap each, eight a core, and none of them shrinks: a tenth of a fleet's
    memory. Here they take turns with the interpreter anyway. See mallopt(3); where there is none, nothing happens.
    """
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


class _Told:
    """Of whom `on_done` was told, each once. catch_up() can be called again when Ctrl-C cut it short."""

    def __init__(self, ended: Sequence[HostOutcome], on_done: Callable[[HostOutcome], None]) -> None:
        self._ended, self._on_done = ended, on_done
        self._told = 0
        self._clears_at = _GARBAGE_OF

    def __len__(self) -> int:
        return self._told

    def catch_up(self) -> None:
        while self._told < len(self._ended):
            self._told += 1
            self._on_done(self._ended[self._told - 1])
            if self._told >= self._clears_at:
                self._clears_at += max(_GARBAGE_OF, self._told // _GARBAGE_SHARE)
                gc.collect()


class _Threads:
    """The workers. start() can be called again when Ctrl-C cut it short."""

    def __init__(self, worker: Callable[[], None], count: int) -> None:
        self._left = [threading.Thread(target=worker, name="gpunode-host", daemon=True) for _ in range(count)]
        if count > 1:
            _share_one_heap()

    def start(self) -> None:
        while self._left:
            before = threading.stack_size(_STACK_BYTES)
            try:
                if self._left[-1].ident is None:  # else Ctrl-C came right after it began
                    self._left[-1].start()
                self._left.pop()
            finally:
                threading.stack_size(before)
