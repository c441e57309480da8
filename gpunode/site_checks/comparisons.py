"""The fixed list of comparisons that a YAML check may name."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any, Literal

from gpunode.regex import regex
from gpunode.values import dataclass

LONGEST_GLOB, MOST_STARS = 200, 8
LONGEST_TEXT = 4096  # characters of a fact that a glob is held against
_EPOCH = regex(r"[0-9]{1,9}:(?=[0-9])")
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


def version_numbers(text: str) -> tuple[int, ...] | None:
    """(610, 57, 4) for "610.57.04", by its first number behind the epoch; None for text without one."""
    text = text[:LONGEST_TEXT]
    found = _NUMBERS.search(text, _epoch_end(text))
    return tuple(map(int, found[0].split("."))) if found else None


def _epoch_end(text: str) -> int:
    """Where a package's version begins: "5:20.10.24" of Debian's docker-ce has the epoch 5."""
    found = _EPOCH.match(text)
    return found.end() if found else 0


def _by_version(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    """An epoch counts where one is wanted; people write the versions that programs say, which have none."""

    def compare(has: str, wanted: str) -> bool | None:
        numbers, least = version_numbers(has), version_numbers(wanted)
        if numbers is None or least is None:
            return None
        if epoch := _epoch_end(wanted):
            mine = has[: max(0, _epoch_end(has) - 1)] or "0"
            numbers, least = (int(mine), *numbers), (int(wanted[: epoch - 1]), *least)
        length = max(len(numbers), len(least))
        padded = [one + (0,) * (length - len(one)) for one in (numbers, least)]
        return test(*padded)

    return compare


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
