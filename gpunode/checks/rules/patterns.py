"""Ids of checks as a person types them: one id, a group, or either with * and ?."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.model.layers import group_of
from gpunode.remedy import Remedy, RepairAction, gpunode

LISTED = Remedy(RepairAction.NONE, gpunode("check", "--list", ssh=False), " lists all checks")


@lru_cache(maxsize=32_768)  # each check against each row of a profile, for every host of a fleet
def matches(id: str, pattern: str) -> bool:
    """ "drv.taint" is matched by itself, "drv", "drv.*" and "*.taint"; brackets are no pattern here."""
    if id == pattern or group_of(id) == pattern:
        return True
    head = pattern[:-1]
    if "*" in head or "?" in pattern:
        return fnmatchcase(id, pattern.replace("[", "[[]"))
    return pattern.endswith("*") and id.startswith(head)  # most are, and need no expression to be compiled


def first_match(id: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if matches(id, pattern)), None)


def parse_patterns(flag: str, texts: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """The patterns of a repeatable flag with commas. Raises UsageError for one that no check has."""
    words = [word.strip() for text in texts for word in text.split(",")]
    for word in words:
        if not any(matches(id, word) for id in ids):
            raise unknown(f"{flag} {word[:80]!r}: no check or group is called that", word, ids)
    return tuple(dict.fromkeys(words))


def refuse_unknown(key: str, id: str, ids: Sequence[str]) -> None:
    """Raises UsageError for an id in a spec that no check has."""
    if id not in ids:
        raise unknown(f"{key}: no check is called {id[:80]!r}", id, ids)


def unknown(said: str, word: str, ids: Sequence[str]) -> UsageError:
    known = (*ids, *dict.fromkeys(map(group_of, ids)))
    return UsageError(said, evidence=meant(word[:80], known).strip(), remedy=LISTED)
