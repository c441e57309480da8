"""Many hosts side by side: each host's failure stays its own, and no host is ever lost from the report."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from gpunode.errors import ExitCode, GpunodeError, worst
from gpunode.model.report import FleetReport, HostOutcome

DEFAULT_FORKS = 50
_STACK_BYTES = 1024 * 1024  # the default of 8 MiB a thread, times hundreds, is address space for nothing

Target = TypeVar("Target")  # str() of it is how the person named the host


def run_fleet(
    targets: Sequence[Target],
    work: Callable[[Target], HostOutcome],
    *,
    forks: int = DEFAULT_FORKS,
    on_done: Callable[[HostOutcome], None],
    stop: threading.Event | None = None,
) -> FleetReport:
    """Run `work` on every target, at most `forks` at once; outcomes in the order of `targets`.

    `on_done` is called in this thread as hosts finish. Ctrl-C sets `stop` (which `work` may look at between its
    steps): no new host begins and those at work come to their end; a second Ctrl-C leaves without them. Hosts that
    never began, or were left at work, say so in their outcome.
    """
    begin = time.monotonic()
    stop = stop or threading.Event()
    waiting: queue.SimpleQueue[tuple[int, Target]] = queue.SimpleQueue()
    for numbered in enumerate(targets):
        waiting.put(numbered)
    done: queue.SimpleQueue[tuple[int, HostOutcome]] = queue.SimpleQueue()
    started: set[int] = set()

    def worker() -> None:
        while True:
            try:
                place, target = waiting.get_nowait()
            except queue.Empty:
                return
            if stop.is_set():
                done.put((place, _unfinished(target, began=False)))
                continue
            started.add(place)
            done.put((place, _outcome(target, work)))

    with _small_stacks():
        for _ in range(max(1, min(forks, len(targets)))):
            threading.Thread(target=worker, name="gpunode-host", daemon=True).start()
    outcomes: dict[int, HostOutcome] = {}
    for place, outcome in _arrivals(done, len(targets), stop):
        outcomes[place] = outcome
        on_done(outcome)
    for place, target in enumerate(targets):
        outcomes.setdefault(place, _unfinished(target, began=place in started))
    return FleetReport(tuple(outcomes[place] for place in range(len(targets))), time.monotonic() - begin)


def exit_code(hosts: Iterable[HostOutcome]) -> ExitCode:
    """The most severe of the hosts' codes."""
    return worst(host.code for host in hosts)


def _arrivals(
    done: queue.SimpleQueue[tuple[int, HostOutcome]], count: int, stop: threading.Event
) -> Iterator[tuple[int, HostOutcome]]:
    while count:
        try:
            arrived = done.get()
        except KeyboardInterrupt:
            if stop.is_set():
                return
            stop.set()
            continue
        count -= 1
        yield arrived


def _outcome(target: Target, work: Callable[[Target], HostOutcome]) -> HostOutcome:
    try:
        return work(target)
    except GpunodeError as error:
        return HostOutcome(str(target), error.code, problem=error.problem, evidence=error.evidence, remedy=error.remedy)
    except Exception as error:
        # A fault of ours on one host must not take the others' reports with it.
        return HostOutcome(
            str(target),
            ExitCode.FAILED,
            problem=f"internal error: {type(error).__name__}: {error}".splitlines()[0],
            evidence=_place(error),
            remedy="this is a fault in gpunode: please report it with the line above",
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


def _unfinished(target: Target, *, began: bool) -> HostOutcome:
    problem = "left at work: the run was stopped twice" if began else "not begun: the run was stopped"
    remedy = "run it again: what was begun is found on the host and finished or put back" if began else "run it again"
    return HostOutcome(str(target), ExitCode.FAILED, problem=problem, remedy=remedy)


@contextmanager
def _small_stacks() -> Iterator[None]:
    before = threading.stack_size(_STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)
