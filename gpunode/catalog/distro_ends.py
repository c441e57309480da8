"""Until when the releases of distributions get security updates."""

from __future__ import annotations

import re
from datetime import date
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.facts import OsFacts
from gpunode.values import dataclass


@dataclass(frozen=True)
class DistroEnd:
    id: str  # os-release ID
    release: str  # VERSION_ID, or its part before the dot
    end: str  # "2026-08-31": the last day of updates that every host gets
    paid: str | None  # "Ubuntu Pro": a subscription that gets some for longer
    until: str | None  # its last day
    source: str
    checked: str
    grade: str

    def is_over(self, today: date) -> bool:
        return today.isoformat() > self.end

    def is_paid_for(self, today: date) -> bool:
        """Over for all but those who pay."""
        return self.is_over(today) and self.until is not None and today.isoformat() <= self.until


def distro_end(os: OsFacts) -> DistroEnd | None:
    """None where no end is known: of a rolling release too, which has none."""
    versions = (os.version_id, os.version_id.partition(".")[0])
    return next((row for row in distro_ends() if row.id == os.id and row.release in versions), None)


@cache
def distro_ends() -> tuple[DistroEnd, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(_end(row) for row in rows("distro_ends.yaml", "ends", "release"))


def _end(row: Row) -> DistroEnd:
    days = row.text("end"), row.maybe_text("until")
    for day in filter(None, days):
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
            raise row.fault("end", f"{day!r} is not a day such as 2026-08-31")
    release, paid = row.text("release"), row.maybe_text("paid")
    found = DistroEnd(row.text("id"), release, days[0], paid, days[1], *row.provenance())
    row.done()
    return found
