"""Which host may begin, and which may reboot, now: waves, failures, reboots and the window, for all hosts of a run.

Every host asks here before it begins (`admit`) and before it reboots (`reboot`), and says how it ended (`ended`). Once
the run has stopped, nobody begins or reboots any more; whoever is at work comes to its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime

from gpunode.errors import ExitCode
from gpunode.fleet.rollout.policy import Limits
from gpunode.fleet.rollout.window import Window, shown
from gpunode.fleet.run import STOPPED
from gpunode.model.report import HostOutcome, StepStatus
from gpunode.render.wording import count

KEEP_S = 20.0  # of silence while a lock is held, which ends after 60 s of it (apply/lock.py)
_GLANCE_S = 30.0  # the window's clock may be set, and this machine may sleep
WELL = (ExitCode.DONE, ExitCode.REBOOT_NEEDED, ExitCode.WARNINGS)

Tell = Callable[[str], None]  # for what a host waits


def local_now() -> datetime:
    return datetime.now().astimezone()


def failed(outcome: HostOutcome) -> bool:
    """It counts among --max-failures. An engine that is refused, with the rest done (4), was in the plan."""
    refused = outcome.code is ExitCode.UNSUPPORTED and outcome.run is not None and not outcome.run.error
    return outcome.untouched is None and outcome.code not in WELL and not refused


def _cut_short(outcome: HostOutcome) -> bool:
    """Its --deadline was over, or the run was stopped, before its next step: nothing went wrong on it."""
    if outcome.run is None or outcome.code is not ExitCode.FAILED:
        return False
    found = {step.status for step in outcome.run.steps}
    return StepStatus.SKIPPED in found and not found & {StepStatus.FAILED, StepStatus.ROLLBACK_FAILED}


class Gate:
    """Used by the hosts' threads. `interrupted`: Ctrl-C was pressed."""

    def __init__(
        self,
        limits: Limits,
        window: Window,
        *,
        interrupted: Callable[[], bool] = lambda: False,
        now: Callable[[], datetime] = local_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.stopped = ""  # why nobody begins any more
        self._window = window
        self._interrupted = interrupted
        self._now, self._clock = now, clock
        # Apart, so that a host that ends does not wake the thousand that wait for its whole batch.
        self._lock = threading.RLock()
        self._begins, self._turns = threading.Condition(self._lock), threading.Condition(self._lock)
        self._left = list(limits.waves)  # hosts of each wave that have not ended
        self._well = 0  # hosts of the canary that ended well
        self._failures: list[str] = []
        self._rebooting: set[str] = set()

    def admit(self, wave: int, waits: Tell) -> str:
        """Wait until hosts of this wave begin; "" then, else why they do not."""
        told = ""
        with self._lock:
            while True:
                closed = self._closed()
                before_s = self._window.wait_s(self._now())
                if closed or not (before_s or any(left > 0 for left in self._left[:wave])):
                    return closed
                told = _tell(waits, self._awaited(wave, before_s), told)
                self._begins.wait(min(before_s or _GLANCE_S, _GLANCE_S))

    def closed(self) -> str:
        """Why nothing new begins; "" where it does."""
        with self._lock:
            return self._closed()

    def reboot(self, host: str, waits: Tell, keep: Callable[[], None]) -> str:
        """Wait for this host's turn to reboot; "" when it has it, until `ended` or `give_back`; else why not.

        `keep` is called every KEEP_S meanwhile.
        """
        while True:
            with self._lock:
                answer = self._turn(host, waits, self._clock() + KEEP_S)
            if answer is not None:
                return answer
            keep()

    def _turn(self, host: str, waits: Tell, until: float) -> str | None:
        """None where it still waits at `until`."""
        told = ""
        while True:
            if closed := self._closed():
                return closed
            if len(self._rebooting) < self.limits.max_reboots:
                self._rebooting.add(host)
                return ""
            left = until - self._clock()
            if left <= 0:
                return None
            told = _tell(waits, f"its turn to reboot (--max-reboots {self.limits.max_reboots})", told)
            self._turns.wait(left)

    def give_back(self, host: str) -> None:
        """Its turn to reboot, of which it makes no use."""
        with self._lock:
            self._rebooting.discard(host)
            self._turns.notify_all()

    def ended(self, wave: int, outcome: HostOutcome) -> None:
        """A host of this wave has come to its end, or did not begin."""
        with self._lock:
            self._left[wave] -= 1
            self._well += wave == 0 and outcome.untouched is None and not failed(outcome)
            if failed(outcome):
                self._failures.append(outcome.target)
                self._judge_failure(wave, outcome)
            self.give_back(outcome.target)
            if self.limits.canary and self._left[0] <= 0 and not self._well:
                self._stop("no canary was set up, so nothing is known of how it goes")
            if self._left[wave] <= 0:
                self._begins.notify_all()

    def lost(self, wave: int, outcome: HostOutcome, *, reboots: bool) -> None:
        """A host of this wave that an interrupted run left at work, and that fails before it is begun again; `reboots`:
        that run may have rebooted it. Nobody knows whether it did, so one that is away counts as one that is not back.
        """
        with self._lock:
            if reboots and outcome.code is ExitCode.UNREACHABLE:
                self._stop(f"{outcome.target} was at work in the interrupted run and may not be back from its reboot")
            self.ended(wave, outcome)

    def stop(self, why: str = STOPPED) -> None:
        """Nobody begins and nobody reboots any more; whoever waits knows at once."""
        with self._lock:
            self._stop(why)

    def _judge_failure(self, wave: int, outcome: HostOutcome) -> None:
        most = self.limits.max_failures
        if outcome.target in self._rebooting and not _cut_short(outcome):
            back = outcome.code is not ExitCode.UNREACHABLE
            self._stop(f"{outcome.target} {'is not well after' if back else 'did not come back from'} its reboot")
        elif self.limits.canary and wave == 0:
            self._stop(f"the canary {outcome.target} failed")
        elif most is not None and len(self._failures) > most:
            self._stop(f"{count(len(self._failures), 'host')} failed, and --max-failures is {most}")

    def _stop(self, why: str) -> None:
        if not self.stopped:
            self.stopped = why
            self._begins.notify_all()
            self._turns.notify_all()

    def _awaited(self, wave: int, before_s: float) -> str:
        if before_s and self._window.opens:
            return f"the window, which opens at {shown(self._window.opens)}"
        return "the canary" if self.limits.canary and wave == 1 else "the batch before it"

    def _closed(self) -> str:
        if self._interrupted():
            self._stop(STOPPED)
        if not self.stopped and self._window.over(self._now()):
            assert self._window.closes is not None
            self._stop(f"the window closed at {shown(self._window.closes)} (--not-after)")
        return self.stopped


def _tell(waits: Tell, what: str, told: str) -> str:
    """Say it where it is news: every host that ends wakes all that wait."""
    if what != told:
        waits(what)
    return what
