"""Progress while hosts are at work: a table that redraws itself on a terminal, plain lines everywhere else."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from gpunode.errors import ExitCode
from gpunode.model.report import Event, EventKind, HostOutcome
from gpunode.render.clean import clean_line
from gpunode.render.door import show
from gpunode.render.run_text import event_line
from gpunode.render.style import Style
from gpunode.render.wording import CODE_WORDS, count, without_name

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

MOST_ROWS = 20  # more hosts than this are counted by phase: a table longer than the terminal only flickers


class Progress:
    """Give it events and outcomes from any thread; use it as a context so that the terminal is restored."""

    def __init__(
        self, style: Style, stream: TextIO, targets: Sequence[str], *, done: str = "done", reasons: bool = True
    ) -> None:
        """`done` stands for a host that ended well: only probing it is not yet "done". `reasons`: a host that did not
        has its reason shown, too; not where an error about it follows at once.
        """
        self._style = style
        self._done = done
        self._reasons = reasons
        self._stream = stream
        self._lock = threading.Lock()
        self._now = dict.fromkeys(targets, "waits")
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self._style.live and self._style.verbose >= 0:
            from rich.console import Console
            from rich.live import Live

            console = Console(
                file=self._stream, no_color=not self._style.colour, highlight=False, markup=False, emoji=False
            )
            self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def event(self, event: Event) -> None:
        """Something happened on a host."""
        with self._lock:
            if self._live:
                begins = event.kind is EventKind.STEP_BEGIN
                self._now[event.target] = f"{event.step}  {event.text}" if begins else event.text or event.step
            elif line := event_line(event, self._style):
                show(line, self._stream, painted=self._style.colour)

    def done(self, outcome: HostOutcome) -> None:
        """A host came to its end."""
        with self._lock:
            word = self._done if outcome.code is ExitCode.DONE else CODE_WORDS[outcome.code]
            self._now[outcome.target] = word
            if not self._live and self._style.verbose >= 0 and len(self._now) > 1:
                ending = (
                    f": {without_name(outcome.target, outcome.problem)}"
                    if self._reasons and outcome.code is not ExitCode.DONE and outcome.problem
                    else ""
                )
                show(clean_line(f"{outcome.target}  {word}{ending}"), self._stream)

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False)
        with self._lock:
            rows = dict(self._now)
        if len(rows) > MOST_ROWS:
            for phase, number in Counter(p.split("  ")[0] for p in rows.values()).most_common(MOST_ROWS):
                table.add_row(_cell(count(number, "host")), _cell(phase))
        else:
            ids = max((len(p.partition("  ")[0]) for p in rows.values() if "  " in p), default=0)
            for target, phase in rows.items():
                step, gap, text = phase.partition("  ")
                shown = f"{step:<{ids}}  {text}" if gap else phase
                table.add_row(_cell(target), _cell(shown))
        return table


def _cell(text: str) -> Text:
    """Cleaned, on one line, and with no markup read out of it: a step's "[red]" is shown as it is."""
    from rich.text import Text

    return Text(clean_line(text), overflow="ellipsis", no_wrap=True)
