"""Where each statement of a TOML file stands in its text: headers, keys, comments, blank lines.

A parser gives values and forgets the places; this gives the places and does not read values. For text that
toml_text.load accepted: what is not TOML is not found out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from gpunode.foreign import BOM, read_toml
from gpunode.regex import regex

STRING = (
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two quotes may stand before the closing three
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
)
_TOKEN = regex(rf"(?P<string>{STRING})|(?P<comment>#[^\n]*)|(?P<open>[\[{{])|(?P<close>[\]}}])|(?P<end>\n)", re.S)
_KEY = regex(rf"[ \t]*(?P<key>[A-Za-z0-9_-]+|{STRING})[ \t]*(?P<dot>\.?)", re.S)
_BLANKS = regex(rf"[ \t\r{BOM}]*")

Kind = Literal["table", "array", "key", "comment", "blank"]  # an array is one of tables: [[x]]


class Statement(NamedTuple):  # there is one for each line: a dataclass takes three times as long to make
    """One statement with its line ends; the statements of a file, joined, are the file."""

    kind: Kind
    text: str
    line: int  # 1 for the first
    path: tuple[str, ...] = ()  # keys from the root: of the table, or of the key
    keys: tuple[tuple[int, int], ...] = ()  # where each written part of the path stands in `text`
    value: tuple[int, int] = (0, 0)  # where a key's value stands in `text`
    comments: tuple[str, ...] = ()  # "# ..." at its end, or between an array's items


@lru_cache(maxsize=8)
def statements(text: str) -> tuple[Statement, ...]:
    """All statements in order. A byte order mark is part of the first."""
    return tuple(_statements(text))


def comments(text: str) -> tuple[str, ...]:
    """Every comment, in order, without the blanks around it."""
    return tuple(comment for statement in statements(text) for comment in statement.comments)


def margin(text: str) -> str:
    """The blanks before the first letter, on its own line."""
    return text[: len(text) - len(text.lstrip())].rpartition("\n")[2]


def line_end(text: str) -> str:
    """The one that a text of whole lines ends with."""
    return "\r\n" if text.endswith("\r\n") else "\n"


def _statements(text: str) -> Iterator[Statement]:
    at, line = 0, 1
    table: tuple[str, ...] = ()
    while at < len(text):
        found = _statement(text, at, line, table)
        if found.kind in ("table", "array"):
            table = found.path
        yield found
        at, line = at + len(found.text), line + found.text.count("\n")


def _statement(text: str, start: int, line: int, table: tuple[str, ...]) -> Statement:
    at = _after_blanks(text, start)
    first = text[at : at + 1]
    if first in ("", "\n"):
        return Statement("blank", text[start : at + 1], line)
    if first == "#":
        _, end, comments = _rest(text, at)
        return Statement("comment", text[start:end], line, comments=comments)
    if first == "[":
        array = text.startswith("[[", at)
        path, keys, at = path_at(text, at + (2 if array else 1), start)
        _, end, comments = _rest(text, at + (2 if array else 1))
        return Statement("array" if array else "table", text[start:end], line, path, keys, comments=comments)
    path, keys, at = path_at(text, at, start)
    at = _after_blanks(text, at + 1)  # behind the equals sign
    value_end, end, comments = _rest(text, at)
    return Statement("key", text[start:end], line, table + path, keys, (at - start, value_end - start), comments)


def _after_blanks(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # no blanks are a match, too


def path_at(text: str, at: int, start: int = 0) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], int]:
    """A dotted key, where its parts stand after `start`, and where it ends."""
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    while found := _KEY.match(text, at):
        parts.append(_name(found["key"]))
        places.append((found.start("key") - start, found.end("key") - start))
        at = found.end()
        if not found["dot"]:
            break
    return tuple(parts), tuple(places), at


def _name(key: str) -> str:
    """What a written part of a key names."""
    if "\\" not in key:  # no escapes: it names what it shows
        return key[1:-1] if key[:1] in ("'", '"') else key
    return str(next(iter(read_toml(f"{key} = 0"))))


def _rest(text: str, at: int) -> tuple[int, int, tuple[str, ...]]:
    """(where the value ends that begins at `at`, where its statement does, after the line end; the comments in it)."""
    depth, value_end, end, comments = 0, len(text), len(text), []
    for token in _TOKEN.finditer(text, at):
        kind = token.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "comment":
            comments.append(token[0].rstrip())
        if depth <= 0 and kind in ("comment", "end"):
            value_end = min(value_end, token.start())
            if kind == "end":
                end = token.end()
                break
    return at + len(text[at:value_end].rstrip()), end, tuple(comments)
