"""How old the catalog is, and which of its rows are: old ones, and those that nobody looked up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from gpunode.catalog.documents import document, names
from gpunode.catalog.load import Catalog
from gpunode.values import dataclass

STALE_DAYS = 180  # two to three releases of a driver branch; a production branch lives for a year


@dataclass(frozen=True)
class StaleRow:
    table: str  # "branches.yaml: branches"
    row: str  # "595 production", "Ubuntu 24.04"
    why: str  # "older than 180 days"
    grade: str
    checked: str
    source: str


def newest_row(known: Catalog) -> date:
    """The day on which a row that decides on drivers was last looked up."""
    tables = (known.branches, known.defaults, known.architectures, known.distros, (known.toolkit,))
    return date.fromisoformat(max(row.checked for table in tables for row in table))


def stale_rows(today: date, days: int = STALE_DAYS) -> tuple[StaleRow, ...]:
    """Rows of every table that were last looked up more than `days` before `today`, or never (grade unverified)."""
    limit = today - timedelta(days=days)
    return tuple(
        StaleRow(table, name, why, grade, checked.isoformat(), source)
        for table, name, source, checked, grade in _every_row()
        if (why := _why(checked < limit, grade == "unverified", days))
    )


def _why(old: bool, unverified: bool, days: int) -> str:
    return " and ".join([f"older than {days} days"] * old + ["unverified"] * unverified)


_Provenance = tuple[str, str, str, date, str]  # table, row, source, checked, grade


def _every_row() -> Iterator[_Provenance]:
    """From the files themselves: a table that nobody has thought of here is looked through too."""
    for name in names():
        for key, table in document(name).items():
            for values in table if isinstance(table, list) else [table]:
                yield from _rows_of(f"{name}: {key}", values)


def _rows_of(table: str, values: Any) -> Iterator[_Provenance]:
    if not isinstance(values, dict):
        return
    if "models" in values:  # a group of GPUs, each of which has a line and a source of its own
        for line in values["models"].splitlines():
            device, name, source, checked, grade = line.split(" | ")
            yield table, f"{device} {name}", source, date.fromisoformat(checked), grade
    elif "source" in values:
        yield (
            table,
            _name(*list(values.values())[:2]),
            values["source"],
            date.fromisoformat(values["checked"]),
            values["grade"],
        )


def _name(first: Any, second: Any) -> str:
    """The first value of a row, and the second where it is one word: "Ubuntu 24.04", "podman conf-override"."""
    return f"{first} {second}" if isinstance(second, str) and re.fullmatch(r"[a-z][a-z0-9-]*", second) else str(first)
