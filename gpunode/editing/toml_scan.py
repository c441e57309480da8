"""Where each statement of a TOML file stands in its text: headers, keys, comments, blank lines.

A parser gives values and forgets the places; this gives the places and does not read values. For text that
toml_text.load accepted: what is not TOML is not found out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from gpunode.foreign import BOM, read_toml

STRING = (
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two quotes may stand before the closing three
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
)
_TOKEN = re.compile(rf"(?P<string>{STRING})|(?P<comment>#[^\n]*)|(?P<open>[\[{{])|(?P<close>[\]}}])|(?P<end>\n)", re.S)
_KEY = re.compile(rf"[ \t]*(?P<key>{STRING}|[A-Za-z0-9_-]+)[ \t]*(?P<dot>\.?)", re.S)


Kind = Literal["table", "array", "key", "comment", "blank"]  # an array is one of tables: [[x]]


@dataclass(frozen=True)
class Statement:
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


def _statement(text: str, at: int, line: int, table: tuple[str, ...]) -> Statement:
    start = at
    while text[at : at + 1] in (" ", "\t", "\r", BOM) and at < len(text):
        at += 1
    first = text[at : at + 1]
    if first in ("", "\n"):
        return Statement("blank", text[start : at + 1], line)
    if first == "#":
        end, comments = _rest(text, at)
        return Statement("comment", text[start:end], line, comments=comments)
    if first == "[":
        array = text.startswith("[[", at)
        path, keys, at = path_at(text, at + (2 if array else 1), start)
        end, comments = _rest(text, at + (2 if array else 1))
        return Statement("array" if array else "table", text[start:end], line, path, keys, comments=comments)
    path, keys, at = path_at(text, at, start)
    at += 1  # the equals sign
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    end, comments = _rest(text, at)
    length = _value_length(text[at:end])
    return Statement("key", text[start:end], line, table + path, keys, (at - start, at - start + length), comments)


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


def _rest(text: str, at: int) -> tuple[int, tuple[str, ...]]:
    """(where the statement ends, after its line end; the comments in it)."""
    depth, comments = 0, []
    for token in _TOKEN.finditer(text, at):
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            depth -= 1
        elif token.lastgroup == "comment":
            comments.append(token[0].rstrip())
        elif token.lastgroup == "end" and depth <= 0:
            return token.end(), tuple(comments)
    return len(text), tuple(comments)


def _value_length(text: str) -> int:
    """How much of `text`, which runs to the end of the statement, is the value."""
    depth, end = 0, len(text)
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            depth -= 1
        elif token.lastgroup in ("comment", "end") and depth <= 0:
            end = token.start()
            break
    return len(text[:end].rstrip())
