"""Progress while hosts are at work: a table that redraws itself on a terminal, plain lines everywhere else."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, cast

from gpunode.errors import ExitCode
from gpunode.model.report import Event, EventKind, HostOutcome
from gpunode.render.clean import clean_line
from gpunode.render.door import show, show_above
from gpunode.render.style import Style
from gpunode.render.wording import count, ending_word, fold_hosts, without_name
from gpunode.values import dataclass

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

MOST_ROWS = 20  # more hosts than this are counted by phase: a table longer than the terminal only flickers
AT_WORK = "what runs on a host runs on there, and the same command goes on from it"
FIRST_S = 10.0  # a wait that is longer is said, and again each time it is three times as long


@dataclass
class Wait:
    """What a host is waited for; in plain lines nothing else shows that it is."""

    what: str
    since: float
    say_at_s: float = FIRST_S


class _WhileRead:
    """A stream that falls silent once nobody reads it: a host at work is not left for that."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._read = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._tried(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._tried(self._stream.flush)

    def _tried(self, output: Callable[[], object]) -> None:
        if self._read:
            try:
                output()
            except (OSError, ValueError):  # the pipe's other end is gone; it is closed
                self._read = False


class Progress:
    """Give it events and outcomes from any thread; use it as a context so that the terminal is restored."""

    def __init__(
        self,
        style: Style,
        stream: TextIO,
        targets: Sequence[str],
        *,
        done: str = "done",
        reasons: bool = True,
        left: str = AT_WORK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`done` stands for a host that ended well: only probing it is not yet "done". `reasons`: a host that did not
        has its reason shown, too; not where an error about it follows at once. `left`: what becomes of what is at work
        when a second Ctrl-C leaves it.
        """
        self._style = style
        self._done = done
        self._reasons = reasons
        self._left = left
        self._stream = stream and cast("TextIO", _WhileRead(stream))  # None: stderr was closed at the start
        self._lock = threading.Lock()
        self._now = dict.fromkeys(targets, "waits")
        self._live: Live | None = None
        self._clock = clock
        self._waits = {target: Wait("its answer, or its turn", clock()) for target in targets}
        self._over = threading.Event()

    def __enter__(self) -> Progress:
        if self._style.live and self._style.verbose >= 0:
            from rich.console import Console
            from rich.live import Live

            console = Console(
                file=self._stream, no_color=not self._style.colour, highlight=False, markup=False, emoji=False
            )
            self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)
            self._live.start()
        elif self._style.verbose >= 0:
            threading.Thread(target=self._remind_again, name="gpunode-progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._live:
            self._live.stop()

    def event(self, event: Event) -> None:
        """Something happened on a host."""
        from gpunode.render.run_text import event_line  # here, since nothing happens while a host is only looked at

        with self._lock:
            self._waits[event.target] = Wait(f"{event.step}  {event.text}".strip(), self._clock())
            if self._live:
                begins = event.kind is EventKind.STEP_BEGIN
                self._now[event.target] = f"{event.step}  {event.text}" if begins else event.text or event.step
            elif line := event_line(event, self._style):
                show(line, self._stream, painted=self._style.colour)

    def waits(self, target: str, what: str) -> None:
        """A host waits for others: in plain lines that is said once it has lasted, of all such hosts together."""
        with self._lock:
            self._waits[target] = Wait(what, self._clock())
            self._now[target] = f"waits for {what}"

    def done(self, outcome: HostOutcome) -> None:
        """A host came to its end."""
        with self._lock:
            self._waits.pop(outcome.target, None)
            word = self._done if outcome.code is ExitCode.DONE else ending_word(outcome)
            word = "left out" if outcome.left_out else word
            self._now[outcome.target] = word
            if not self._live and self._style.verbose >= 0 and len(self._now) > 1:
                reason = without_name(outcome.target, outcome.problem).removeprefix(f"{word}: ")
                ending = (
                    f": {reason}" if self._reasons and outcome.code is not ExitCode.DONE and outcome.problem else ""
                )
                show(clean_line(f"{outcome.target}  {word}{ending}"), self._stream)

    def remind(self) -> None:
        """Say which hosts are waited for, and for what: the same wait of many hosts in one line."""
        with self._lock:
            now, due = self._clock(), dict[tuple[str, int], list[str]]()
            for target, wait in self._waits.items():
                if now - wait.since >= wait.say_at_s:
                    wait.say_at_s *= 3
                    due.setdefault((wait.what, round(now - wait.since)), []).append(target)
            for (what, waited_s), targets in due.items():
                show(clean_line(f"{fold_hosts(targets)}  still waiting after {waited_s} s: {what}"), self._stream)

    def stopping(self) -> None:
        """The answer to Ctrl-C: what is still waited for, and what a second one does. Given with -q as well."""
        with self._lock:
            for what, targets in self._hosts_by_wait().items():
                self._line(f"{fold_hosts(targets)}  waiting for: {what}")
            self._line(f"gpunode: stopping after that. Ctrl-C again leaves at once: {self._left}")

    def _hosts_by_wait(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for target, wait in self._waits.items():
            found.setdefault(wait.what, []).append(target)
        return found

    def _line(self, text: str) -> None:
        """Above the table, where there is one."""
        if self._live:
            show_above(self._live.console, clean_line(text))
        else:
            show(clean_line(text), self._stream)

    def _remind_again(self) -> None:
        while not self._over.wait(1.0):
            self.remind()

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


def _plain(text: str) -> Text:
    """Cleaned, and with no markup read out of it: a step's "[red]" is shown as it is."""
    from rich.text import Text

    return Text(clean_line(text))


def _cell(text: str) -> Text:
    """The same on one line of the table."""
    cell = _plain(text)
    cell.overflow, cell.no_wrap = "ellipsis", True
    return cell
