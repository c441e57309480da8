"""From which version on a program behaves otherwise, as catalog/versions.yaml lists it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass


@dataclass(frozen=True)
class Since:
    program: str  # "containerd"
    feature: str  # "cdi-by-default"
    since: str  # "28.2" or "1.7.16": the first version with it; "580": a driver branch
    source: str
    checked: str
    grade: str

    @property
    def version(self) -> tuple[int, ...]:
        numbers = tuple(map(int, self.since.split(".")))
        return numbers if len(numbers) > 1 else (*numbers, 0)

    @property
    def release(self) -> tuple[int, int]:
        return self.version[0], self.version[1]


def first_with(program: str, feature: str) -> tuple[int, ...]:
    """(28, 2) for docker's cdi-by-default, (1, 7, 16) for containerd's cdi-0.7; KeyError for what no row has."""
    return threshold(program, feature).version


def threshold(program: str, feature: str) -> Since:
    """The row of first_with, with its source; KeyError for what no row has."""
    return thresholds()[program, feature]


@cache
def thresholds() -> Mapping[tuple[str, str], Since]:
    """By program and feature. Raises UsageError that names row and key of a fault in the file."""
    found = map(_since, rows("versions.yaml", "versions", "feature"))
    return {(row.program, row.feature): row for row in found}


def _since(row: Row) -> Since:
    text = row.text("since")
    if not re.fullmatch(r"\d+(\.\d+){0,2}", text):
        raise row.fault("since", f"{text!r} is not a version such as 28.2")
    since = Since(row.text("program"), row.text("feature"), text, *row.provenance())
    row.done()
    return since
