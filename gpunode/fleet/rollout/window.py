"""The maintenance window: nothing begins before it, and nothing new after it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from gpunode.errors import UsageError
from gpunode.regex import regex
from gpunode.values import dataclass

_CLOCK = regex(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_FARTHEST = timedelta(days=366)
_FORMS = "22:00 of this machine's clock, or 2026-12-01T22:00:00+01:00"


@dataclass(frozen=True)
class Window:
    """Its ends with their zone; None: open on that side."""

    opens: datetime | None = None
    closes: datetime | None = None

    def wait_s(self, now: datetime) -> float:
        """How long until it opens; 0 where it is open."""
        return max(0.0, (self.opens - now).total_seconds()) if self.opens else 0.0

    def over(self, now: datetime) -> bool:
        return self.closes is not None and now >= self.closes

    @property
    def text(self) -> str:
        """ "nothing begins before 2026-12-01 22:00 +0100 or from 2026-12-02 06:00 +0100 on"; "" for none."""
        before = f"before {shown(self.opens)}" if self.opens else ""
        after = f"from {shown(self.closes)} on" if self.closes else ""
        both = " or ".join(filter(None, (before, after)))
        return f"nothing begins {both}" if both else ""


def shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M %z}"


def parse_window(not_before: str | None, not_after: str | None, now: datetime) -> Window:
    """The window that was typed; `now` has the local zone. Raises UsageError for one that is over, or never opens.

    HH:MM is the next one by this machine's clock; with two of them the window that is open or opens next, so that
    22:00 to 06:00 is open at 3 in the morning.
    """
    first = None if not_before is None else _parse("--not-before", not_before, now)
    last = None if not_after is None else _parse("--not-after", not_after, now)
    opens = first if isinstance(first, datetime) else None
    closes = last if isinstance(last, datetime) else None
    if isinstance(last, timedelta):
        closes = _next(last, max(opens, now) if opens else now)
    if isinstance(first, timedelta):
        opens = _before(first, closes) if closes and isinstance(last, timedelta) else _next(first, now)
    _refuse_empty(opens, closes, now)
    return Window(opens, closes)


def _parse(flag: str, text: str, now: datetime) -> datetime | timedelta:
    """A moment with its zone, or a time of day."""
    if match := _CLOCK.fullmatch(text):
        return timedelta(hours=int(match[1]), minutes=int(match[2]))
    try:
        # Python 3.10 reads no Z. Near the years 1 and 9999 a zone leads out of what can be computed.
        moment = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
        if moment.tzinfo is None:
            why = "it names no zone"
        elif abs(moment - now) > _FARTHEST:
            why = "it is more than a year away"
        else:
            return moment.astimezone()
    except (ValueError, OverflowError, OSError):
        why = "it is no time"
    raise UsageError(
        f"{flag} {text[:40]!r}: {why}", evidence=f"its forms are {_FORMS}", remedy="give it in one of them"
    )


def _at(clock: timedelta, day: datetime) -> datetime:
    """That time of day by the local clock, whose offset may differ from today's (summer time).

    A night in which the clock passes over it has the first moment after it instead: by the zones' rules either side
    would be right (PEP 495), and Pythons differ in which they take.
    """
    wanted = datetime(day.year, day.month, day.day) + clock
    found = wanted.astimezone()
    if found.replace(tzinfo=None) == wanted:
        return found
    early, late = sorted((found, wanted.replace(fold=1).astimezone()))
    while early.utcoffset() != late.utcoffset():
        early = (early + timedelta(minutes=1)).astimezone()
    return early


def _next(clock: timedelta, after: datetime) -> datetime:
    local = after.astimezone()
    today = _at(clock, local)
    return today if today > after else _at(clock, local + timedelta(days=1))


def _before(clock: timedelta, end: datetime) -> datetime:
    local = end.astimezone()
    today = _at(clock, local)
    return today if today < end else _at(clock, local - timedelta(days=1))


def _refuse_empty(opens: datetime | None, closes: datetime | None, now: datetime) -> None:
    if closes is None:
        return
    if closes <= now:
        raise UsageError(
            f"--not-after {shown(closes)} has passed", evidence=f"it is {shown(now)}", remedy="give a later one"
        )
    if opens is not None and opens >= closes:
        raise UsageError(
            f"between --not-before {shown(opens)} and --not-after {shown(closes)} there is no time",
            remedy="give an earlier --not-before, or a later --not-after",
        )
