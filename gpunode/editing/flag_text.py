"""Command-line flags inside files of others, as shells and systemd read them: environment files, units, lists of flags.

What stands in comments is no flag. Every edit is read again: where another flag would change, the file is refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gpunode.advice import named
from gpunode.errors import ConfigFileError
from gpunode.regex import regex

_FLAG = regex(r"(?<![\w$/.,-])--[a-z][A-Za-z0-9-]*", re.ASCII)
_VALUE = regex(r"=([^\s\"']*)|[ \t]+(?!-)([^\s\"'=$\\-][^\s\"']*)")
_BLANKS, _BLANK = (" ", "\t"), regex(r"[ \t]*")
_COMMENT = regex(r"[ \t]*[#;]")


class Flag(NamedTuple):
    """`--name=value`, `--name value` or `--name`, and where it stands."""

    name: str
    value: str | None  # None: none follows it
    start: int
    value_at: int  # where the value begins
    end: int  # of both
    open: bool = False  # the value goes on behind `end`: it is in quotes, or continues in the next line
    spaced: bool = False  # a blank stands before the value, which may be no value of this flag


def flags(text: str) -> tuple[Flag, ...]:
    """In the order of the text."""
    found: list[Flag] = []
    start = 0
    for line in text.splitlines(keepends=True):
        if not _COMMENT.match(line):
            found += (
                _flag(text, start + one.start(), start + one.end(), start + len(line)) for one in _FLAG.finditer(line)
            )
        start += len(line)
    return tuple(found)


def without_flag(path: str, text: str, flag: Flag) -> str:
    """The text without the flag and its value; without the whole line where nothing else is on it."""
    start, end = flag.start, flag.end
    quote = text[max(start - 1, 0) : start]
    if quote in ("'", '"') and text[end : end + 1] == quote and text[max(start - 2, 0) : start - 1] != "=":
        start, end = start - 1, end + 1
    if text[end : end + 1] in _BLANKS:
        end = _BLANK.match(text, end).end()  # type: ignore[union-attr]
    else:
        while text[max(start - 1, 0) : start] in _BLANKS:
            start -= 1
    begin, newline = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    after = newline + 1 if newline >= 0 else len(text)
    continued = text[:begin].rstrip("\r\n").endswith("\\")
    if not text[begin:start].strip() and not text[end:after].strip() and not continued:
        start, end = begin, after
    return _proven(path, text, text[:start] + text[end:], flag, None)


def with_value(path: str, text: str, flag: Flag, value: str) -> str:
    return _proven(path, text, text[: flag.value_at] + value + text[flag.end :], flag, value)


def refused(path: str, text: str, at: int, what: str) -> ConfigFileError:
    place = f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"
    return ConfigFileError(
        f"{path}:{place}: {what}",
        evidence="the file was not touched",
        remedy=f"edit {named(path)} at that place yourself, and run gpunode again",
    )


def _flag(text: str, start: int, end: int, line_end: int) -> Flag:
    name = text[start + 2 : end]
    found = _VALUE.match(text, end, line_end)
    if found is None:
        return Flag(name, None, start, end, end)
    group = 1 if found[1] is not None else 2
    value, behind = found[group], found.end()
    is_open = value.endswith("\\") or (not value and text[behind : behind + 1] in ("'", '"'))
    return Flag(name, value, start, found.start(group), behind, is_open, spaced=group == 2)


def _proven(path: str, before: str, after: str, flag: Flag, value: str | None) -> str:
    expected = [(one.name, value if one == flag else one.value) for one in flags(before) if one != flag or value]
    if [(one.name, one.value) for one in flags(after)] != expected:
        raise refused(path, before, flag.start, f"--{flag.name} cannot be edited without changing something else")
    return after
