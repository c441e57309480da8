"""Which rows are stale: those that are old, and those that nobody looked up, of every table."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from gpunode.catalog.age import _every_row, newest_row, stale_rows
from gpunode.catalog.load import load_catalog
from tests.catalog.test_provenance import FILES, models, tables

C = load_catalog()
TODAY = newest_row(C)
FOR_EVER = 36_500


def test_on_the_day_of_the_newest_row_only_unverified_ones_are_stale() -> None:
    found = stale_rows(TODAY, FOR_EVER)
    assert {row.grade for row in found} == {"unverified"}
    assert {row.why for row in found} == {"unverified"}
    assert len(found) == sum(grade == "unverified" for *_, grade in _every_row()) > 0


def test_years_later_every_row_of_every_table_is_stale() -> None:
    found = stale_rows(TODAY + timedelta(days=4000))
    gpus = len(C.models)
    rows = sum(1 for file in FILES if file != "gpus.yaml" for _ in tables(file))
    assert [models(group) for _, group in tables("gpus.yaml") if models(group)] == []
    assert len(found) == gpus + rows
    assert all("older than 180 days" in row.why for row in found)


@pytest.mark.parametrize(("days", "old"), [(180, False), (179, True)])
def test_a_row_is_old_on_the_day_after_its_last(days: int, old: bool) -> None:
    checked = date.fromisoformat(C.toolkit.checked)
    found = [row for row in stale_rows(checked + timedelta(days=180), days) if row.table == "toolkit.yaml: toolkit"]
    assert [row.why for row in found] == ([f"older than {days} days"] if old else [])


@pytest.mark.parametrize(
    "name", ["branches.yaml: branches", "branches.yaml: defaults", "gpus.yaml: groups", "cuda.yaml: majors"]
)
def test_a_row_is_named(name: str) -> None:
    found = {row.row for row in stale_rows(TODAY + timedelta(days=4000)) if row.table == name}
    known = {
        "branches.yaml: branches": "595 production",
        "branches.yaml: defaults": "current",
        "gpus.yaml: groups": "1eb8 T4",
    }
    assert known.get(name, "13") in found
