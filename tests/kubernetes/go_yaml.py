"""What Go's reader of YAML takes a plain scalar for: kubectl's (sigs.k8s.io/yaml, goyaml.v2) and go.yaml.in/yaml/v3.

Written after resolve() of both, whose answers differ for y, n, yes, no, on and off alone.
"""

from __future__ import annotations

import re
from datetime import datetime

WORDS = {
    word for one in ("true", "false", "null", "yes", "no", "on", "off") for word in (one, one.title(), one.upper())
}
LETTERS = {"y", "Y", "n", "N", "", "~", "<<"}
POINTS = {f"{sign}.{end}" for sign in ("", "+", "-") for end in ("inf", "Inf", "INF")} | {".nan", ".NaN", ".NAN"}
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)


def reads_a_text(plain: str) -> bool:
    if plain in WORDS | LETTERS | POINTS:
        return False
    if plain[0] == ".":
        return FLOAT.fullmatch(plain) is None
    if plain[0] not in "+-0123456789":
        return True
    number = plain.replace("_", "")
    return not (_is_time(plain) or _is_integer(number) or FLOAT.fullmatch(number) or _is_binary(number))


def _is_integer(text: str) -> bool:
    """strconv.ParseInt(text, 0, 64), and what is larger: a leading 0 is octal, as 0o is."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)):
        if digits.lower().startswith(prefix) and digits != "0":
            return _of_base(digits[len(prefix) :], base)
    return _of_base(digits, 10)


def _is_binary(text: str) -> bool:
    """Behind 0b it parses what is left, a sign among it."""
    if text.startswith("0b"):
        return _of_base(text[2:].removeprefix("-" if text[2:3] == "-" else "+"), 2)
    return text.startswith("-0b") and _of_base(text[3:], 2)


def _of_base(digits: str, base: int) -> bool:
    return bool(digits) and all(one in "0123456789abcdef"[:base] for one in digits.lower())


def _is_time(text: str) -> bool:
    """parseTimestamp: four digits, then short fields; the zone is Z or +00:00, and fractions are any."""
    day = re.fullmatch(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(.*)", text, re.ASCII | re.DOTALL)
    if day is None:
        return False
    try:
        datetime(int(day[1]) or 4, int(day[2]), int(day[3]))  # Go has a year 0
    except ValueError:
        return False
    clock = r"[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.,][0-9]+)?"
    return re.fullmatch(rf"([Tt]{clock}(Z|[-+][0-9]{{2}}:[0-9]{{2}})| {clock})?", day[4], re.ASCII) is not None
