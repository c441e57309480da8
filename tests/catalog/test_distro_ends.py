"""The ends of distributions' releases, and the numbers that checks of the machine go by."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from gpunode.catalog.distro_ends import distro_end, distro_ends
from gpunode.catalog.system_limits import system_limits
from gpunode.model.facts import OsFacts

CHECKS = Path(__file__).parents[2] / "gpunode" / "checks"


@pytest.mark.parametrize(
    ("id", "version", "day", "over", "paid"),
    [
        ("debian", "11", date(2026, 8, 31), False, False),
        ("debian", "11", date(2026, 9, 1), True, False),
        ("ubuntu", "20.04", date(2025, 5, 31), False, False),
        ("ubuntu", "20.04", date(2030, 4, 2), True, True),
        ("ubuntu", "20.04", date(2030, 4, 3), True, False),
        ("rocky", "9.6", date(2032, 5, 31), False, False),
    ],
)
def test_a_release_ends_on_a_day_and_for_those_who_pay_on_another(
    id: str, version: str, day: date, over: bool, paid: bool
) -> None:
    row = distro_end(OsFacts(id, version))
    assert row is not None
    assert (row.is_over(day), row.is_paid_for(day)) == (over, paid)


@pytest.mark.parametrize(("id", "version"), [("arch", ""), ("debian", ""), ("ubuntu", "2.04"), ("rocky", "90.1")])
def test_a_release_that_is_not_in_the_table_has_no_end(id: str, version: str) -> None:
    assert distro_end(OsFacts(id, version)) is None


def test_no_release_stands_twice_and_who_pays_has_longer() -> None:
    rows = distro_ends()
    assert len({(row.id, row.release) for row in rows}) == len(rows)
    assert all((row.paid is None) == (row.until is None) for row in rows)
    assert all(row.until > row.end for row in rows if row.until)


def test_every_number_of_the_table_is_asked_for() -> None:
    asked = {name for path in CHECKS.rglob("*.py") for name in re.findall(r'\blimit\("([^"]+)"\)', path.read_text())}
    assert asked == set(system_limits())
