"""check --watch: rounds over the same hosts, the news of each, and the last one's code."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from gpunode.cli.output import Reader, to_stdout
from gpunode.cli.results import Checked
from gpunode.cli.verbs.check_watch import watch
from gpunode.errors import ExitCode
from gpunode.model.report import FleetReport, HostOutcome
from tests.render.values import CHECK


def result(seconds: float = 1.0, at_s: float = 0.0, **changes: object) -> Checked:
    host = replace(HostOutcome("gpu04", ExitCode.FAILED, check=CHECK), **changes)  # type: ignore[arg-type]
    return Checked("check", FleetReport((host,), seconds), at_s=at_s)


FAILS = result()
LATER = result(seconds=2.0, at_s=60.0)
LOST = result(code=ExitCode.UNREACHABLE, check=None, problem="no route")
LOST_AGAIN = result(code=ExitCode.UNREACHABLE, check=None, problem="no answer")
FEWER = result(check=replace(CHECK, results={i: r for i, r in CHECK.results.items() if i != "drv.dkms-next"}))
WELL = result(code=ExitCode.DONE, check=replace(CHECK, results={"drv.loaded": CHECK.results["drv.loaded"]}))


def rounds(results: list[Checked], *, only_changes: bool) -> tuple[int, list[Checked], list[float]]:
    """The code, what was shown, and the pauses; Ctrl-C comes in the last of them."""
    shown: list[Checked] = []
    pauses: list[float] = []
    left = iter(results)

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(results):
            raise KeyboardInterrupt

    def show(one: Checked) -> int:
        shown.append(one)
        return int(one.report.hosts[0].code)

    code = watch(30, lambda: next(left), show, only_changes=only_changes, wait=wait)
    return code, shown, pauses


def test_every_round_is_shown_and_the_last_ones_code_is_the_end() -> None:
    assert rounds([FAILS, LATER, WELL], only_changes=False) == (0, [FAILS, LATER, WELL], [30, 30, 30])


@pytest.mark.parametrize(
    ("results", "shown", "code"),
    [
        ([FAILS, LATER, LATER], [FAILS], 1),
        ([FAILS, WELL, FAILS], [FAILS, WELL, FAILS], 1),
        ([FAILS, LOST, LOST, LATER], [FAILS, LOST, LATER], 1),
        ([WELL, LOST], [WELL, LOST], 3),
        ([LOST, LOST_AGAIN], [LOST, LOST_AGAIN], 3),
        ([FAILS, FEWER], [FAILS, FEWER], 1),
    ],
    ids=[
        "nothing new",
        "there and back",
        "lost for two rounds",
        "lost at the end",
        "lost otherwise",
        "another finding",
    ],
)
def test_of_text_only_the_news_is_shown(results: list[Checked], shown: list[Checked], code: int) -> None:
    assert rounds(results, only_changes=True)[:2] == (code, shown)


def test_a_reader_that_has_left_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the real stdout: a pipe of which nobody holds the other end."""
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(Reader, "left", False)
    with os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        seen = []

        def show(one: Checked) -> int:
            seen.append(one)
            assert len(seen) == 1, "it goes on for nobody"
            to_stdout(b"a line\n")
            return 1

        assert watch(1, lambda: FAILS, show, only_changes=False, wait=lambda _: None) == 1
    assert seen == [FAILS]


def test_ctrl_c_in_a_round_is_an_interruption() -> None:
    def look() -> Checked:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(1, look, lambda _: 0, only_changes=False, wait=lambda _: None)
