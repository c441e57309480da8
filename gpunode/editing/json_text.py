"""Edits a JSON object inside its own text: what is not set keeps every byte, so the diff shows only what changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # C scanner with positions, in json since 2.6
from typing import Any, NamedTuple

from gpunode import foreign
from gpunode.advice import named
from gpunode.errors import ConfigFileError
from gpunode.foreign import BOM, NotRead, StandsTwice
from gpunode.regex import regex

BLANKS = regex(r"[ \t\n\r]*")  # the four that JSON allows (RFC 8259 section 2)
UTF16 = ("\udcff\udcfe", "\udcfe\udcff")  # its byte order marks, as surrogateescape represents them
# Integers become floats here: nothing computes with them, and Python refuses to build an int of over 4300 digits.
DECODER = json.JSONDecoder(parse_int=float)


class Member(NamedTuple):
    """One `"key": value` of an object, as offsets into the text."""

    key: str
    key_at: int
    value_at: int
    end: int


def load(path: str, text: str) -> dict[str, Any]:
    """The object in `text`; blank text or `null` is an empty one. Raises ConfigFileError with line and column.

    Stricter than json.loads, as the daemon is: no NaN, no second object, and no key twice (Go takes the last of
    two scalars and merges two objects, so a reader would be misled either way).
    """
    body = text.removeprefix(BOM)
    if not body.strip(" \t\r\n"):
        return {}
    try:
        value = foreign.read_json(body, undecodable=True, halves=True, unique=True)
    except StandsTwice as found:
        _refuse_duplicates(path, body, 0)
        raise fault(path, body, found.at, found.what) from None
    except NotRead as found:
        raise _spoken(path, body, found) from None
    if value is None:  # dockerd takes a file that holds only `null` as an empty one
        return {}
    if not isinstance(value, dict):
        raise fault(path, body, BLANKS.match(body).end(), "the file must hold one object, {...}")  # type: ignore[union-attr]
    return value


def position(text: str, keys: tuple[str, ...]) -> str:
    """'LINE:COLUMN' of the value at `keys` in a text that `load` took."""
    body = text.removeprefix(BOM)
    start = _skip(body, 0)
    for key in keys:
        start = next(m.value_at for m in members(body, start) if m.key == key)
    return _line_column(body, start)


def put(text: str, keys: tuple[str, ...], value: object) -> str:
    """`text` (an object) with `value` at `keys`; missing parents and `null` parents become objects."""
    start = _skip(text, 0)
    for depth, key in enumerate(keys):
        found = next((m for m in members(text, start) if m.key == key), None)
        rest = keys[depth + 1 :]
        if found is None:
            return _insert(text, start, key, _nested(rest, value), depth)
        if not rest or text[found.value_at] != "{":
            newline, unit = _style(text)
            gap = newline + unit * (depth + 1) if "\n" in text.strip() else " "
            filled = _spell(text, _nested(rest, value), gap)
            return text[: found.value_at] + filled + text[found.end :]
        start = found.value_at
    raise ValueError("put() needs at least one key")


def span(text: str, keys: tuple[str, ...]) -> tuple[int, int] | None:
    """(start, end) of the value at `keys` in a text that `load` took, without the blanks around it; () is the whole."""
    start = _skip(text, len(BOM) if text.startswith(BOM) else 0)
    if start == len(text):
        return None
    end = DECODER.raw_decode(text, start)[1]
    for key in keys:
        inside = members(text, start) if text[start] == "{" else ()
        found = next((m for m in inside if m.key == key), None)
        if found is None:
            return None
        start, end = found.value_at, found.end
    return start, end


def cut(text: str, keys: tuple[str, ...]) -> str:
    """`text` without the member at `keys`; what `put` added as a last member leaves every other byte unchanged."""
    parent = span(text, keys[:-1])
    siblings = list(members(text, parent[0])) if parent and text[parent[0] : parent[0] + 1] == "{" else []
    at = next((n for n, m in enumerate(siblings) if m.key == keys[-1]), None)
    if parent is None or at is None:
        return text
    if len(siblings) == 1:
        return f"{text[: parent[0]]}{{}}{text[parent[1] :]}"
    if at == len(siblings) - 1:
        return text[: siblings[at - 1].end] + text[siblings[at].end :]
    return text[: siblings[at].key_at] + text[siblings[at + 1].key_at :]


def members(text: str, start: int) -> Iterator[Member]:
    """The members of the object that opens at `start`; the text must be valid JSON."""
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, after = scanstring(text, at + 1, True)
        value_at = _skip(text, _skip(text, after) + 1)
        _, end = DECODER.raw_decode(text, value_at)
        yield Member(key, at, value_at, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _insert(text: str, start: int, key: str, value: object, depth: int) -> str:
    """A new last member of the object at `start`, laid out like its siblings."""
    siblings = list(members(text, start))
    newline, unit = _style(text)
    if siblings:
        gap = _gap_before(text, start, siblings)
        gap = newline + gap.rsplit("\n", 1)[-1] if "\n" in gap else " "
        spelled = f"{json.dumps(key)}: {_spell(text, value, gap)}"
        return text[: siblings[-1].end] + "," + gap + spelled + text[siblings[-1].end :]
    across = depth == 0 or "\n" in text.strip()
    before, after = (newline + unit * (depth + 1), newline + unit * depth) if across else ("", "")
    spelled = f"{before}{json.dumps(key)}: {_spell(text, value, before)}{after}"
    return f"{text[: start + 1]}{spelled}{text[text.index('}', start) :]}"


def _gap_before(text: str, start: int, siblings: list[Member]) -> str:
    """The blanks before the last member's key."""
    last = siblings[-1].key_at
    return text[(text.rindex(",", 0, last) if len(siblings) > 1 else start) + 1 : last]


def _spell(text: str, value: object, gap: str) -> str:
    """`value` as JSON after a key that `gap` stands before: across lines if that is a line end and an indent."""
    if "\n" not in gap:
        return json.dumps(value, ensure_ascii=False)
    _, unit = _style(text)
    return gap.join(json.dumps(value, indent=unit, ensure_ascii=False).split("\n"))


def _style(text: str) -> tuple[str, str]:
    """(line end, one level of indent) of the file; its first indented line decides, four spaces where none is."""
    indent = re.search(r"\{[ \t]*\r?\n([ \t]+)\"", text)
    return ("\r\n" if "\r\n" in text else "\n"), (indent[1] if indent else "    ")


def _nested(keys: tuple[str, ...], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _skip(text: str, at: int) -> int:
    blank = BLANKS.match(text, at)
    return blank.end() if blank else at


def _spoken(path: str, text: str, found: NotRead) -> ConfigFileError:
    """The decoder's fault in words and a place that do not depend on Python's version."""
    if text.startswith(UTF16):
        return fault(path, text, 0, "the file is UTF-16; save it as UTF-8")
    if found.what == "nested too deeply":
        return fault(path, text, found.at, f"{found.what} to be a daemon's configuration")
    # Up to 3.12 it stands at the bracket or brace after a comma too many, from 3.13 at the comma.
    comma = len(text[: found.at + 1].rstrip("]} \t\n\r")) - 1
    between = text[comma + 1 : BLANKS.match(text, found.at + 1).end() + 1]  # type: ignore[union-attr]
    if text[comma : comma + 1] == "," and between.strip(" \t\n\r")[:1] in ("]", "}"):
        return fault(path, text, comma, "a comma with nothing after it")
    return fault(path, text, found.at, found.what)


def _refuse_duplicates(path: str, text: str, start: int) -> None:
    """Raises for a key that stands twice in one object, at any depth."""
    start = _skip(text, start)
    if text[start] == "{":
        seen: set[str] = set()
        for member in members(text, start):
            if member.key in seen:
                raise fault(path, text, member.key_at, f"key {json.dumps(member.key)} stands twice")
            seen.add(member.key)
            _refuse_duplicates(path, text, member.value_at)
    elif text[start] == "[":
        for item in _items(text, start):
            _refuse_duplicates(path, text, item)


def _items(text: str, start: int) -> Iterator[int]:
    at = _skip(text, start + 1)
    while text[at] != "]":
        yield at
        at = _skip(text, DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)


def _line_column(text: str, at: int) -> str:
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def fault(path: str, text: str, at: int, what: str) -> ConfigFileError:
    """What to raise for the character at `at`."""
    where = f"{path}:{_line_column(text, at)}"
    return ConfigFileError(
        f"{where}: {what}",
        evidence="the file was not touched",
        remedy=f"correct {named(path)} at that place, or move it away, and run gpunode again",
    )
