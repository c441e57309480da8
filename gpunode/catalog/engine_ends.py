"""Until when releases of engines get fixes, and which releases of runc have a known way out of a container."""

from __future__ import annotations

import re
from datetime import date
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import at_least, release
from gpunode.values import dataclass


@dataclass(frozen=True)
class EngineEnd:
    engine: str  # "containerd"
    release: tuple[int, int]  # (2, 1)
    end: str  # "2026-07-03"; "2026-09": some day of that month
    source: str
    checked: str
    grade: str

    def is_over(self, today: date) -> bool:
        """Of a month without a day, whether all of it is over."""
        return today.isoformat()[: len(self.end)] > self.end


@dataclass(frozen=True)
class RuncFloor:
    release: tuple[int, int]
    fixed: str  # "1.3.3"
    cve: str
    source: str
    checked: str
    grade: str


def end_of(engine: str, version: str | None) -> EngineEnd | None:
    """None where no end is known, for an unknown version or release too."""
    return next((row for row in engine_ends() if row.engine == engine and row.release == release(version)), None)


def runc_floor(version: str | None) -> RuncFloor | None:
    """What this runc lacks; None where nothing is known against it, as for an unknown version."""
    have = release(version)
    row = next((row for row in runc_floors() if have is not None and have <= row.release), None)
    return row if row and not at_least(version, tuple(map(int, row.fixed.split(".")))) else None


@cache
def engine_ends() -> tuple[EngineEnd, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(_end(row) for row in rows("engine_ends.yaml", "ends", "release"))


@cache
def runc_floors() -> tuple[RuncFloor, ...]:
    """Oldest first."""
    return tuple(_runc(row) for row in rows("engine_ends.yaml", "runc", "release"))


def _end(row: Row) -> EngineEnd:
    end = row.text("end")
    if not re.fullmatch(r"\d{4}-\d\d(-\d\d)?", end):
        raise row.fault("end", f"{end!r} is not a day such as 2026-07-03, nor a month")
    found = EngineEnd(row.text("engine"), _minor(row), end, *row.provenance())
    row.done()
    return found


def _runc(row: Row) -> RuncFloor:
    found = RuncFloor(_minor(row), row.text("fixed"), row.text("cve"), *row.provenance())
    row.done()
    return found


def _minor(row: Row) -> tuple[int, int]:
    text = row.text("release")
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    if found is None:
        raise row.fault("release", f"{text!r} is not a release such as 2.1")
    return int(found[1]), int(found[2])
