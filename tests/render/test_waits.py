"""In plain lines a wait of more than ten seconds is said: which host, and what is waited for."""

from __future__ import annotations

from io import StringIO

import pytest

from gpunode.errors import ExitCode
from gpunode.fleet.run import not_begun
from gpunode.model.report import Event, EventKind, HostOutcome
from gpunode.render.live import Progress
from gpunode.render.style import Style


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_after(progress: Progress, stream: StringIO, clock: Clock, now: float) -> list[str]:
    """What a reminder at this second adds."""
    before, clock.now = len(stream.getvalue()), now
    progress.remind()
    return stream.getvalue()[before:].splitlines()


def test_a_wait_is_said_after_ten_seconds_and_then_ever_more_rarely() -> None:
    stream, clock = StringIO(), Clock()
    progress = Progress(Style(), stream, ["gpu01", "gpu02", "gpu03"], clock=clock)
    assert lines_after(progress, stream, clock, 9) == []
    progress.done(HostOutcome("gpu02", ExitCode.DONE))
    progress.event(Event(EventKind.STEP_BEGIN, "gpu03", "install the driver", "driver.install"))
    clock.now = 10
    assert lines_after(progress, stream, clock, 10) == ["gpu01  still waiting after 10 s: its answer, or its turn"]
    assert lines_after(progress, stream, clock, 19) == [
        "gpu03  still waiting after 10 s: driver.install  install the driver"
    ]
    assert lines_after(progress, stream, clock, 29) == []
    assert lines_after(progress, stream, clock, 30) == ["gpu01  still waiting after 30 s: its answer, or its turn"]


def test_the_same_wait_of_many_hosts_is_one_line() -> None:
    stream, clock = StringIO(), Clock()
    progress = Progress(Style(), stream, [f"gpu{n:02}" for n in range(1, 65)], clock=clock)
    assert lines_after(progress, stream, clock, 12) == ["gpu[01-64]  still waiting after 12 s: its answer, or its turn"]


def test_hosts_that_wait_for_others_say_so_together_and_not_at_once() -> None:
    stream, clock = StringIO(), Clock()
    progress = Progress(Style(), stream, ["gpu01", "gpu02", "gpu03"], clock=clock)
    for name in ("gpu02", "gpu03"):
        progress.waits(name, "the canary")
    progress.event(Event(EventKind.PHASE, "gpu01", ""))
    assert lines_after(progress, stream, clock, 9) == []
    assert "gpu[02-03]  still waiting after 10 s: the canary" in lines_after(progress, stream, clock, 10)


def test_a_host_that_was_not_begun_says_why_once() -> None:
    stream = StringIO()
    progress = Progress(Style(), stream, ["gpu01", "gpu02"])
    progress.done(not_begun("gpu02", "the canary gpu01 failed"))
    assert stream.getvalue() == "gpu02  not begun: the canary gpu01 failed\n"


def test_a_host_that_says_something_is_not_waited_for() -> None:
    stream, clock = StringIO(), Clock()
    progress = Progress(Style(), stream, ["gpu01"], clock=clock)
    clock.now = 9
    progress.event(Event(EventKind.NOTE, "gpu01", "Unpacking nvidia-open", "driver.install"))
    assert lines_after(progress, stream, clock, 18) == []


@pytest.mark.parametrize("verbose", [-1, 0], ids=["with -q as well", "in plain lines"])
def test_ctrl_c_is_answered_with_what_goes_on_and_what_a_second_one_does(verbose: int) -> None:
    stream = StringIO()
    progress = Progress(Style(verbose=verbose), stream, ["gpu01", "gpu02", "gpu03", "gpu04"])
    progress.done(HostOutcome("gpu02", ExitCode.DONE))
    progress.event(Event(EventKind.STEP_BEGIN, "gpu03", "install the driver", "driver.install"))
    before = len(stream.getvalue())
    progress.stopping()
    assert stream.getvalue()[before:].splitlines() == [
        "gpu01, gpu04  waiting for: its answer, or its turn",
        "gpu03  waiting for: driver.install  install the driver",
        "gpunode: stopping after that. Ctrl-C again leaves at once: what runs on a host runs on there, and the same "
        "command goes on from it",
    ]


def test_ctrl_c_is_answered_above_a_live_table() -> None:
    stream = StringIO()
    with Progress(Style(live=True), stream, ["gpu01"], left=f"it ends {'by itself ' * 20}[red]") as progress:
        progress.stopping()
    shown = stream.getvalue()
    assert "waiting for: its answer, or its turn" in shown
    assert f"Ctrl-C again leaves at once: it ends {'by itself ' * 20}[red]" in shown


@pytest.mark.parametrize("error", [BrokenPipeError("Broken pipe"), ValueError("I/O operation on closed file")])
@pytest.mark.parametrize("live", [False, True], ids=["plain lines", "a table"])
def test_a_reader_that_is_gone_ends_no_work_and_is_written_to_once(error: Exception, live: bool) -> None:
    class Gone(StringIO):
        tries = 0

        def write(self, text: str) -> int:
            self.tries += 1
            raise error

    stream = Gone()
    with Progress(Style(live=live), stream, ["gpu01", "gpu02"]) as progress:
        progress.event(Event(EventKind.STEP_BEGIN, "gpu01", "install the driver", "driver.install"))
        progress.done(HostOutcome("gpu02", ExitCode.DONE))
        progress.stopping()
    assert stream.tries == 1


def test_without_a_stderr_nothing_is_said() -> None:
    with Progress(Style(), None, ["gpu01", "gpu02"]) as progress:  # type: ignore[arg-type]
        progress.done(HostOutcome("gpu02", ExitCode.DONE))
