"""sec.cve-db-age: the one check that asks for a date, which is the controller's."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from gpunode.catalog.age import STALE_DAYS, newest_row
from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.report import CheckOutcome, Finding, NotApplicable
from tests.checks import hosts as h

C = load_catalog()
NEWEST = newest_row(C)


def outcome(today: date | None) -> CheckOutcome:
    return run_all(h.host(), None, C, today).results["sec.cve-db-age"].outcome


@pytest.mark.parametrize("days", [-1, 0, STALE_DAYS], ids=["tomorrow's row, in another time zone", "today", "the last"])
def test_a_recent_catalog_passes(days: int) -> None:
    assert outcome(NEWEST + timedelta(days=days)) is None


def test_an_old_catalog_is_found_with_both_dates() -> None:
    today = NEWEST + timedelta(days=STALE_DAYS + 1)
    found = outcome(today)
    assert isinstance(found, Finding)
    assert f"{STALE_DAYS + 1} days old" in found.summary
    assert str(NEWEST) in found.evidence
    assert str(today) in found.evidence
    assert "gpunode catalog --stale" in found.remedy.text


@pytest.mark.parametrize(
    ("today", "why"),
    [(None, "not known"), (date(1970, 1, 1), "the clock says 1970-01-01"), (NEWEST - timedelta(days=2), "newest row")],
    ids=["no date", "a clock that was lost", "a clock that is late"],
)
def test_a_clock_that_cannot_be_right_gives_no_verdict(today: date | None, why: str) -> None:
    found = outcome(today)
    assert isinstance(found, NotApplicable)
    assert why in found.reason


def test_the_newest_row_counts_and_not_the_oldest() -> None:
    old = replace(C, branches=tuple(replace(b, checked="2020-01-01") for b in C.branches))
    assert newest_row(old) == NEWEST
    newer = replace(C, toolkit=replace(C.toolkit, checked="2031-02-03"))
    assert newest_row(newer) == date(2031, 2, 3)
