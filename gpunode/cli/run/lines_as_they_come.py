"""`--format jsonl` of a verb that changes hosts: events, and each host as it ends.

Nothing that happens to stdout stops the work on a host. A thread of its own writes: whoever reads may pause (`| less`,
a stopped consumer), and what he does not take is said at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from gpunode.cli.errors import INTERRUPTED, say
from gpunode.cli.options.groups import ResultOptions
from gpunode.cli.output import deliver
from gpunode.render.wording import count

if TYPE_CHECKING:
    from gpunode.model.report import FleetReport, HostOutcome

MOST_WAITING = 10_000  # lines that nobody has read yet; events beyond that are in the run's log alone


class LinesAsTheyCome:
    """Used by the hosts' threads; `finish` by the one that began them."""

    def __init__(self, host_line: Callable[[HostOutcome], str] | None, output: ResultOptions) -> None:
        """`host_line`: as line_of_each has it; None prints nothing."""
        self._host_line = host_line
        self._output = output
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._printed: set[str] = set()
        self._left_out = 0
        self._fault: Exception | None = None
        self._writer = Thread(target=self._write, name="gpunode-lines", daemon=True)
        if self.on:
            self._writer.start()

    @property
    def on(self) -> bool:
        return self._host_line is not None

    def event(self, line: str) -> None:
        """One event as a JSON line."""
        if not self.on:
            return
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(line)
        else:
            self._left_out += 1

    def ended(self, outcome: HostOutcome) -> None:
        if (host_line := self._host_line) is not None:
            self._printed.add(outcome.target)
            self._waiting.put(host_line(outcome))  # its text: an outcome may hold a plan with all its files

    def finish(self, report: FleetReport) -> None:
        """The hosts of which nothing was printed. Waits for who reads; raises what kept stdout from taking it all."""
        if not self.on:
            return
        for outcome in report.hosts:
            if outcome.target not in self._printed:
                self.ended(outcome)
        self._waiting.put(None)
        try:
            self._writer.join()
        except KeyboardInterrupt:
            # Whoever reads has stopped in the middle of a line. Python's own end would wait for the writer, which has
            # stdout; all that was to be done is done, and the run's record has its end.
            say("gpunode: interrupted: not all of the result was read")
            os._exit(INTERRUPTED)
        if self._left_out:
            say(f"gpunode: {count(self._left_out, 'event')} more than stdout took in time: the run log has them")
        if self._fault is not None:
            raise self._fault

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            if self._fault is None:
                try:
                    deliver(line, self._output)
                except Exception as error:
                    self._fault = error  # raised by `finish`
