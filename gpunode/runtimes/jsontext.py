"""Edits a JSON object inside its own text: what is not set keeps every byte, so the diff shows only what changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # C scanner with positions, in json since 2.6
from typing import Any, NoReturn

from gpunode.errors import ConfigFileError

BLANKS = re.compile(r"[ \t\n\r]*")  # the four JSON knows (RFC 8259 section 2)
BOM = "\ufeff"
CONSTANT = re.compile(r'"(?:\\.|[^"\\])*"|(NaN|-?Infinity)')
# Integers become floats here: nothing computes with them, and Python refuses to build an int of over 4300 digits.
DECODER = json.JSONDecoder(parse_int=float)


@dataclass(frozen=True)
class Member:
    """One `"key": value` of an object, as offsets into the text."""

    key: str
    key_at: int
    value_at: int
    end: int


def load(path: str, text: str) -> dict[str, Any]:
    """The object in `text`; blank text is an empty one. Raises ConfigFileError with line and column.

    Stricter than json.loads, as the daemon is: no NaN, no second object, and no key twice (Go takes the last of
    two scalars and merges two objects, so a reader would be misled either way).
    """
    body = text.removeprefix(BOM)
    if not body.strip(" \t\r\n"):
        return {}
    try:
        value = json.loads(body, parse_constant=_no_constant, parse_int=float)
        _no_duplicates(path, body, 0)
    except json.JSONDecodeError as fault:
        raise _fault(path, body, fault.pos, fault.msg) from None
    except RecursionError:
        raise _fault(path, body, 0, "nested too deeply to be a daemon's configuration") from None
    except ValueError as fault:
        at = next((m.start() for m in CONSTANT.finditer(body) if m[1]), 0)
        raise _fault(path, body, at, f"{fault} is not JSON") from None
    if not isinstance(value, dict):
        raise _fault(path, body, BLANKS.match(body).end(), "the file must hold one object, {...}")  # type: ignore[union-attr]
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
            filled = _spell(text, _nested(rest, value), depth + 1, across="\n" in text.strip())
            return text[: found.value_at] + filled + text[found.end :]
        start = found.value_at
    raise ValueError("put() needs at least one key")


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
        across = "\n" in gap
        gap = newline + gap.rsplit("\n", 1)[-1] if across else " "
        spelled = f"{json.dumps(key)}: {_spell(text, value, depth + 1, across=across)}"
        return text[: siblings[-1].end] + "," + gap + spelled + text[siblings[-1].end :]
    across = depth == 0 or "\n" in text.strip()
    spelled = f"{json.dumps(key)}: {_spell(text, value, depth + 1, across=across)}"
    if across:
        spelled = f"{newline}{unit * (depth + 1)}{spelled}{newline}{unit * depth}"
    return f"{text[: start + 1]}{spelled}{text[text.index('}', start) :]}"


def _gap_before(text: str, start: int, siblings: list[Member]) -> str:
    """The blanks before the last member's key."""
    last = siblings[-1].key_at
    return text[(text.rindex(",", 0, last) if len(siblings) > 1 else start) + 1 : last]


def _spell(text: str, value: object, depth: int, *, across: bool) -> str:
    """`value` as JSON for a place `depth` levels down; across lines with the file's indent, or on one line."""
    if not across:
        return json.dumps(value, ensure_ascii=False)
    newline, unit = _style(text)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + unit * depth).join(lines)


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


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _no_duplicates(path: str, text: str, start: int) -> None:
    """Raises for a key that stands twice in one object, at any depth."""
    start = _skip(text, start)
    if text[start] == "{":
        seen: set[str] = set()
        for member in members(text, start):
            if member.key in seen:
                raise _fault(path, text, member.key_at, f"key {json.dumps(member.key)} stands twice")
            seen.add(member.key)
            _no_duplicates(path, text, member.value_at)
    elif text[start] == "[":
        for item in _items(text, start):
            _no_duplicates(path, text, item)


def _items(text: str, start: int) -> Iterator[int]:
    at = _skip(text, start + 1)
    while text[at] != "]":
        yield at
        at = _skip(text, DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)


def _line_column(text: str, at: int) -> str:
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def _fault(path: str, text: str, at: int, what: str) -> ConfigFileError:
    where = f"{path}:{_line_column(text, at)}"
    return ConfigFileError(
        f"{where}: {what}",
        evidence="the file was not touched",
        remedy=f"correct {path} at that place, or move it away, and run gpunode again",
    )
