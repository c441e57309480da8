"""In plain lines a wait of more than ten seconds is said: which host, and what is waited for."""

from __future__ import annotations

from io import StringIO

from gpunode.errors import ExitCode
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


def test_a_host_that_says_something_is_not_waited_for() -> None:
    stream, clock = StringIO(), Clock()
    progress = Progress(Style(), stream, ["gpu01"], clock=clock)
    clock.now = 9
    progress.event(Event(EventKind.NOTE, "gpu01", "Unpacking nvidia-open", "driver.install"))
    assert lines_after(progress, stream, clock, 18) == []
