"""When an index was made, and until when it is valid, by what its signer wrote into it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Literal

from gpunode.regex import regex

_FIELD = regex(r"^(Date|Valid-Until): (.{1,80})$", re.MULTILINE)
# Seconds since 1970 at which each of its lists was made.
_TIMESTAMP = regex(r"<timestamp>\s*([0-9]{1,11})(?:\.[0-9]*)?\s*</timestamp>")
_REPOMD = "<repomd"


def date_of(text: str, field: Literal["Date", "Valid-Until"]) -> datetime | None:
    """ "Date" or "Valid-Until" of an apt repository's InRelease; the date of a repomd.xml, which never ends.

    None where it has none that is one.
    """
    if _REPOMD in text:
        return _timestamp(text) if field == "Date" else None
    found = dict(_FIELD.findall(text))
    if field not in found:
        return None
    try:
        date = parsedate_to_datetime(found[field].replace("UTC", "+0000"))
        return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, TypeError, OverflowError):  # a year of twenty digits, or a day before the first one
        return None


def _timestamp(text: str) -> datetime | None:
    seconds = [int(number) for number in _TIMESTAMP.findall(text)]
    return datetime.fromtimestamp(min(max(seconds), 253402300799), timezone.utc) if seconds else None


def iso(date: datetime) -> str:
    return date.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def newest(texts: Iterable[str]) -> datetime:
    """The date of the newest of these indexes; 1970 where none has one."""
    start = datetime.fromtimestamp(0, timezone.utc)
    return max((date for text in texts if (date := date_of(text, "Date"))), default=start)


def first_end(indexes: Mapping[str, str]) -> tuple[datetime, str] | None:
    """When the first of these (path -> text) ends, and its path; None where none does."""
    ends = [(end, path) for path, text in indexes.items() if (end := date_of(text, "Valid-Until"))]
    return min(ends, default=None)
