"""The fixed list of comparisons that a YAML check may name."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any, Literal

from gpunode.regex import regex
from gpunode.values import dataclass

LONGEST_GLOB, MOST_STARS = 200, 8
LONGEST_TEXT = 4096  # characters of a fact that a glob is held against
_EPOCH = regex(r"[0-9]{1,9}:(?=[0-9])")
_CANDIDATE = regex(r"[-~]?rc(?![a-z])")
_NUMBERS = regex(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}")

NUMBER = frozenset({"integer", "number"})
TEXT = frozenset({"string"})
SCALAR = NUMBER | TEXT | {"boolean"}
LIST = frozenset({"array"})
ANY = SCALAR | LIST | {"object"}

Of = Literal["each", "number", "all", "list"]


@dataclass(frozen=True)
class Comparison:
    """`test(what the facts have, what is wanted)`: True, False, or None where that cannot be told."""

    kinds: frozenset[str]  # JSON types of facts that it is for
    test: Callable[[Any, Any], bool | None]
    of: Of = "each"  # each value; how many there are; all at once, without a wanted one; the members of a list
    many: bool = False  # what is wanted is a list
    versions: bool = False
    glob: bool = False


def version_numbers(text: str) -> tuple[tuple[int, ...], ...] | None:
    """((5, 14, 0), (1,), (570, 12, 1), (9,), (6,)) for "5.14.0-570.12.1.el9_6": its runs of numbers behind the epoch,
    behind the first 1, or 0 for a release candidate ("1.17.8-rc.1"); None for text without a number.
    """
    text = text[:LONGEST_TEXT]
    runs = list(_NUMBERS.finditer(text, _epoch_end(text)))
    if not runs:
        return None
    first, *more = (tuple(map(int, run[0].split("."))) for run in runs)
    return (first, (0 if _CANDIDATE.match(text, runs[0].end()) else 1,), *more)


def _epoch_end(text: str) -> int:
    """Where a package's version begins: "5:20.10.24" of Debian's docker-ce has the epoch 5."""
    found = _EPOCH.match(text)
    return found.end() if found else 0


def _by_version(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    """What is wanted says how much is compared: an epoch counts where one is wanted, as programs say theirs without it,
    and of "6.8.0-51-generic" what is behind "6.8.0" only for "6.8.0-51".
    """

    def compare(has: str, wanted: str) -> bool | None:
        numbers, least = version_numbers(has), version_numbers(wanted)
        if numbers is None or least is None:
            return None
        if epoch := _epoch_end(wanted):
            epoch_of_it = has[: max(0, _epoch_end(has) - 1)] or "0"
            numbers, least = ((int(epoch_of_it),), *numbers), ((int(wanted[: epoch - 1]),), *least)
        pairs = list(zip_longest(numbers[: len(least)], least, fillvalue=()))
        return test([_padded(mine, other) for mine, other in pairs], [_padded(other, mine) for mine, other in pairs])

    return compare


def _padded(run: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return run + (0,) * (len(other) - len(run))


def _fits(has: str, pattern: str) -> bool | None:
    return None if len(has) > LONGEST_TEXT else fnmatch.fnmatchcase(has, pattern)


def _fits_not(has: str, pattern: str) -> bool | None:
    fits = _fits(has, pattern)
    return None if fits is None else not fits


COMPARISONS: Mapping[str, Comparison] = {
    "equals": Comparison(SCALAR, lambda has, wanted: has == wanted),
    "not-equals": Comparison(SCALAR, lambda has, wanted: has != wanted),
    "one-of": Comparison(SCALAR, lambda has, wanted: has in wanted, many=True),
    "none-of": Comparison(SCALAR, lambda has, wanted: has not in wanted, many=True),
    "at-least": Comparison(NUMBER, lambda has, wanted: has >= wanted),
    "at-most": Comparison(NUMBER, lambda has, wanted: has <= wanted),
    "version-at-least": Comparison(TEXT, _by_version(lambda has, wanted: has >= wanted), versions=True),
    "version-at-most": Comparison(TEXT, _by_version(lambda has, wanted: has <= wanted), versions=True),
    "matches": Comparison(TEXT, _fits, glob=True),
    "not-matches": Comparison(TEXT, _fits_not, glob=True),
    "contains": Comparison(LIST, lambda has, wanted: wanted in has, of="list"),
    "lacks": Comparison(LIST, lambda has, wanted: wanted not in has, of="list"),
    "same": Comparison(SCALAR, lambda has, _: len(set(has)) == 1, of="all"),
    "count-is": Comparison(ANY, lambda has, wanted: has == wanted, of="number"),
    "count-at-least": Comparison(ANY, lambda has, wanted: has >= wanted, of="number"),
    "count-at-most": Comparison(ANY, lambda has, wanted: has <= wanted, of="number"),
}
