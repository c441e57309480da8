"""The CVEs of old container toolkits, next to the floor that decides."""

from __future__ import annotations

from typing import get_args

from gpunode.catalog.load import load_catalog
from gpunode.catalog.toolkit_cves import Workaround, toolkit_cves
from gpunode.checks.isolation import SET_BY
from gpunode.model.versions import numbers


def test_the_newest_fix_is_the_floor() -> None:
    newest = max(toolkit_cves(), key=lambda row: numbers(row.fixed))
    assert (newest.fixed, newest.cve) == (load_catalog().toolkit.floor, load_catalog().toolkit.floor_cve)


def test_every_workaround_is_one_that_a_check_can_see() -> None:
    assert set(SET_BY) == set(get_args(Workaround)) == {row.workaround for row in toolkit_cves()} - {None}
