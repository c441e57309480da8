"""How long one host may take: one that hangs holds neither its place among those at work nor the end of the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gpunode.errors import ExitCode
from gpunode.model.report import HostOutcome, StepStatus
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.wording import with_name

Target = TypeVar("Target")  # str() of it is how the user named the host
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def within(
    limit_s: float | None, work: Callable[[Target], HostOutcome], abandon: Callable[[Target], None]
) -> Callable[[Target], HostOutcome]:
    """`work` that only looks, given up after `limit_s` wherever it hangs: in a name server, an agent, a ProxyCommand.

    What it then still does has no reader; `abandon` lets go of the host. None: no limit. Raises what `work` raises.
    """
    return work if limit_s is None else lambda target: _bounded(limit_s, work, abandon, target)


def _bounded(
    limit_s: float, work: Callable[[Target], HostOutcome], abandon: Callable[[Target], None], target: Target
) -> HostOutcome:
    done: list[HostOutcome | BaseException] = []

    def at_work() -> None:
        try:
            done.append(work(target))
        except BaseException as error:  # the thread that waits raises it
            done.append(error)

    thread = threading.Thread(target=at_work, name="gpunode-look", daemon=True)
    thread.start()
    thread.join(limit_s)
    if not done:
        threading.Thread(target=abandon, args=(target,), name="gpunode-abandon", daemon=True).start()
        return _given_up(str(target), limit_s)
    if isinstance(done[0], BaseException):
        raise done[0]
    return done[0]


def _given_up(target: str, limit_s: float) -> HostOutcome:
    return HostOutcome(
        target,
        ExitCode.UNREACHABLE,
        problem=with_name(target, f"not done within the {limit_s:g} s of --deadline, and given up"),
        evidence="what it had answered by then is not used; a script of gpunode's that only looks may still run there",
        remedy=Remedy(
            RepairAction.WAIT,
            "look on the host for processes in state D (ps -eo pid,stat,comm), or give it more time with --deadline",
        ),
    )


class Deadline:
    """For work that changes a host: after it no step begins, and the one at work comes to its end."""

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._begin = time.monotonic()

    @property
    def passed(self) -> bool:
        return self._limit_s is not None and time.monotonic() - self._begin >= self._limit_s

    def uncounted(self, wait: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        """`wait` for other hosts, during which the clock stands."""

        def waited(asked: Asked) -> Answer:
            begin = time.monotonic()
            try:
                return wait(asked)
            finally:
                self._begin += time.monotonic() - begin

        return waited

    def said(self, outcome: HostOutcome) -> HostOutcome:
        """With the deadline as the reason, where steps were left out because of it."""
        run = outcome.run
        if not self.passed or run is None or run.evidence or not any(s.status is StepStatus.SKIPPED for s in run.steps):
            return outcome
        return replace(outcome, run=replace(run, evidence=f"the {self._limit_s:g} s of --deadline were over"))
