"""Names of hosts as people write them: lists with commas, and ranges by Slurm's spelling or Ansible's."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from gpunode.errors import UsageError
from gpunode.regex import regex

MOST_HOSTS = 10_000
LONGEST_WORD = 200_000  # characters: 10,000 numbers of nine digits in one pair of brackets, twice over
_SLURM, _NUMBERS = r"[0-9,-]+", r"[0-9]{1,9}:[0-9]{1,9}(?::[0-9]{1,9})?"
_LETTERS = r"[a-z]:[a-z](?::[0-9]{1,9})?|[A-Z]:[A-Z](?::[0-9]{1,9})?"
# An IPv6 address in brackets has more colons than [01:50:2], or two of them in a row.
_RANGE = regex(rf"\[({_SLURM}|{_NUMBERS}|{_LETTERS})\]")


def split_words(value: str) -> list[str]:
    """At commas, except those inside brackets. An empty place (`a,,b`) stays, to be reported as a fault."""
    cuts = [len(value)]
    inside = False  # whether the next bracket closes
    for sign in reversed(list(re.finditer(r"[\[\],]", value))):
        if sign[0] != ",":
            inside = sign[0] == "]"
        elif not inside:
            cuts.append(sign.start())
    return [value[before + 1 : end].strip() for before, end in pairwise([-1, *reversed(cuts)])]


def expand(word: str) -> Iterator[str]:
    """gpu[01-03,7] and gpu[01:03] -> gpu01, gpu02, ... Raises UsageError for a range that is none, or too long."""
    if not word:
        raise UsageError("an empty host name", evidence="two commas in a row, or one at the end")
    if len(word) > LONGEST_WORD:
        raise UsageError(f"a word of {len(word)} characters is no host's", evidence=f"it begins with {word[:40]!r}")
    parts = _RANGE.split(word)  # literal, range, literal, range, ..., literal
    choices, count = [], 1
    for place, part in enumerate(parts):
        choices.append([part] if place % 2 == 0 else _members(part, word))
        count *= len(choices[-1])
        if count > MOST_HOSTS:
            raise UsageError(f"{_short(word)} names {count} hosts or more", evidence=f"one run takes {MOST_HOSTS}")
    return ("".join(chosen) for chosen in itertools.product(*choices))


def has_range(word: str) -> bool:
    return _RANGE.search(word) is not None


def bracketed(word: str) -> str:
    """A bare IPv6 address, as inventories have it, in the brackets that keep it apart from a port."""
    with suppress(ValueError):
        return f"[{ipaddress.IPv6Address(word)}]" if word.count(":") > 1 else word
    return word


def _members(text: str, word: str) -> list[str]:
    if ":" in text:
        return _stepped(text, word)
    found: list[str] = []
    for part in text.split(","):
        found += _numbers(part, text, word)
        if len(found) > MOST_HOSTS:  # before the next one is made
            raise UsageError(f"{_short(word)} names more hosts than one run takes", evidence=f"those are {MOST_HOSTS}")
    return found


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else f"{text[:117]}...")


def _numbers(part: str, text: str, word: str) -> list[str]:
    """'01-03' -> 01 02 03: as many digits as the range's begin has, leading zeros kept."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
    if match is None:
        raise UsageError(
            f"{_short(word)}: [{text[:40]}] is not a range", evidence="ranges look like [1-8], [01-64] or [1,3,7-9]"
        )
    first, last = match[1], match[2] or match[1]
    _bounded(int(first), int(last), part, word)
    width = len(first) if first.startswith("0") else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1)]


def _stepped(text: str, word: str) -> list[str]:
    """Ansible's '01:07:2' -> 01 03 05 07, and 'a:c' -> a b c. Its zeros want a begin and an end of one length."""
    first, last, step = [*text.split(":"), "1"][:3]
    if int(step) < 1:
        raise UsageError(f"{_short(word)}: [{text[:40]}] has no step", evidence="the third number is 1 or more")
    if first.isalpha():
        _bounded(ord(first), ord(last), text, word)
        return [chr(code) for code in range(ord(first), ord(last) + 1, int(step))]
    padded = first.startswith("0") and len(first) > 1
    if padded and len(first) != len(last):
        raise UsageError(
            f"{_short(word)}: [{text[:40]}] has zeros on one side", evidence=f"{first} and {last} differ in length"
        )
    _bounded(int(first), int(last), text, word)
    width = len(first) if padded else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1, int(step))]


def _bounded(first: int, last: int, part: str, word: str) -> None:
    if last < first:
        raise UsageError(
            f"{_short(word)}: [{part[:40]}] goes backwards", evidence="the second end is less than the first"
        )
    if last - first >= MOST_HOSTS:
        raise UsageError(f"{_short(word)}: [{part[:40]}] is too long", evidence=f"one run takes {MOST_HOSTS} hosts")
