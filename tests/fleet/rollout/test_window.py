"""The maintenance window, by clocks and by moments; in a zone with summer time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

from gpunode.errors import UsageError
from gpunode.fleet.rollout.window import parse_window


@pytest.fixture(autouse=True)
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


@pytest.mark.parametrize(
    ("now", "opens", "closes"),
    [
        ("2026-12-01T12:00", "2026-12-01T22:00", "2026-12-02T06:00"),
        ("2026-12-01T23:00", "2026-12-01T22:00", "2026-12-02T06:00"),
        ("2026-12-02T03:00", "2026-12-01T22:00", "2026-12-02T06:00"),
        ("2026-12-02T06:00", "2026-12-02T22:00", "2026-12-03T06:00"),
        ("2026-03-28T23:30", "2026-03-28T22:00", "2026-03-29T06:00"),
    ],
    ids=["waits", "is open", "is open after midnight", "has just closed", "the night of summer time"],
)
def test_a_window_by_the_clock_may_go_over_midnight(now: str, opens: str, closes: str) -> None:
    window = parse_window("22:00", "06:00", at(now))
    assert (window.opens, window.closes) == (at(opens), at(closes))


def test_the_night_of_summer_time_is_an_hour_shorter() -> None:
    window = parse_window("22:00", "06:00", at("2026-03-28T12:00"))
    assert window.opens is not None
    assert window.closes is not None
    assert (window.closes - window.opens).total_seconds() == 7 * 3600


@pytest.mark.parametrize(
    ("before", "after", "opens", "closes"),
    [
        ("02:00", "05:00", "03:00+02:00", "05:00+02:00"),
        ("02:30", "03:15", "03:00+02:00", "03:15+02:00"),
        ("01:00", "02:30", "01:00+01:00", "03:00+02:00"),
    ],
)
def test_a_time_that_the_night_of_summer_time_has_not_is_when_the_clock_passes_over_it(
    before: str, after: str, opens: str, closes: str
) -> None:
    """Not an hour before: whoever asked for nothing before two o'clock got it at one."""
    window = parse_window(before, after, at("2026-03-28T20:00"))
    assert (window.opens, window.closes) == tuple(
        datetime.fromisoformat(f"2026-03-29T{end}") for end in (opens, closes)
    )


def test_one_end_by_the_clock_is_the_next_such_time() -> None:
    now = at("2026-12-01T12:00")
    assert parse_window("11:00", None, now).opens == at("2026-12-02T11:00")
    assert parse_window(None, "9:30", now).closes == at("2026-12-02T09:30")
    later = parse_window("2026-12-05T10:00:00+01:00", "9:30", now)
    assert later.closes == at("2026-12-06T09:30"), "the one after it opens"


def test_the_same_time_twice_is_a_day_of_it() -> None:
    window = parse_window("22:00", "22:00", at("2026-12-01T12:00"))
    assert (window.opens, window.closes) == (at("2026-11-30T22:00"), at("2026-12-01T22:00"))


def test_a_moment_has_a_zone_and_z_is_one() -> None:
    window = parse_window("2026-12-01T21:00:00Z", None, at("2026-12-01T12:00"))
    assert window.opens == datetime(2026, 12, 1, 21, tzinfo=timezone.utc)
    assert "2026-12-01 22:00 +0100" in window.text


def test_when_it_is_open() -> None:
    window = parse_window("22:00", "06:00", at("2026-12-01T12:00"))
    assert window.wait_s(at("2026-12-01T21:59")) == 60
    assert window.wait_s(at("2026-12-01T22:00")) == 0
    assert not window.over(at("2026-12-02T05:59:59"))
    assert window.over(at("2026-12-02T06:00"))
    assert parse_window(None, None, at("2026-12-01T12:00")).text == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("2026-12-01T22:00:00", None, "no zone"),
        ("24:00", None, "no time"),
        ("tonight", None, "no time"),
        ("", None, "no time"),
        ("9999-12-31T23:59:59+00:00", None, "more than a year away"),
        ("0001-01-01T00:00:00+14:00", None, "--not-before"),
        ("2026-12-01T22:00:00+99:00", None, "no time"),
        (None, "2026-12-01T11:00:00+01:00", "has passed"),
        ("22:00", "2026-12-01T20:00:00+01:00", "there is no time"),
        ("22:00", "22:00x", "no time"),
    ],
)
def test_what_is_no_window_is_refused(before: str | None, after: str | None, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_window(before, after, at("2026-12-01T12:00"))
    assert said in refused.value.problem
