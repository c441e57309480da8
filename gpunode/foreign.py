"""The one door for JSON, TOML, YAML and numbers that others wrote: bounded, and every fault is one error with a place.

The libraries behind it say "no" in many ways (RecursionError, UnicodeError, OverflowError, a ValueError about digits)
and take what no daemon means: NaN, a million brackets, half a surrogate pair that cannot be printed afterwards. Here
all of that is NotRead. Sizes are in characters, places count from 1.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gpunode.regex import regex

if TYPE_CHECKING:
    import yaml

BOM = "\ufeff"  # the byte order mark that some editors put first
LARGEST = 16 << 20  # characters; the probe's own limits for a file are below it
DEEPEST = 100  # lists and objects in each other; docker's /info has five, containerd's configuration eight
MOST_DIGITS = 300  # of one number; float64, which Go reads numbers into, ends at 308
_JSON_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'  # one that never ends goes on to the end: no place is read twice
_JSON_DEPTH = regex(rf"{_JSON_STRING}|(?P<open>[\[{{])|(?P<close>[\]}}])", re.S)
_JSON_CONSTANT = regex(rf"{_JSON_STRING}|(?P<found>NaN|-?Infinity)", re.S)
_UNDECODABLE = regex("[\ud800-\udfff]")
# Every escape is one match, so that the backslash of \\ud800 is not taken for the beginning of one.
_ESCAPE = regex(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F]..)|.)", re.S)
_BARE_OR_QUOTED = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
# tomllib builds a dotted key part by part in time that grows with the square of their number.
_LONG_KEY = regex(rf"(?<![A-Za-z0-9_-])(?:{_BARE_OR_QUOTED}[ \t]*\.[ \t]*){{{DEEPEST}}}")
_TOO_LONG = 10**MOST_DIGITS
_LONG_NUMBER = regex(rf"0x[0-9a-fA-F_]{{249}}|[0-9_]{{{MOST_DIGITS}}}")  # 16 ** 249 < 10 ** MOST_DIGITS
_TOML_PLACE = regex(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class NotRead(ValueError):
    """Text of others that is not what it should be; str() is "LINE:COLUMN: what"."""

    def __init__(self, what: str, line: int = 1, column: int = 1, *, at: int = 0) -> None:
        super().__init__(f"{line}:{column}: {what}")
        self.what = what
        self.line = line
        self.column = column
        self.at = at  # the same place as an offset; 0 where only line and column are known


class StandsTwice(NotRead):
    """A key that one object has twice."""


def read_file(path: Path, most: int) -> bytes:
    """The bytes of a file that a person named: at most `most`, and one more by which a longer one is told.

    A pipe is read as well (`--spec <(...)`); one that nobody writes to is empty, and is not waited for. Raises OSError.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)) as file:
        os.set_blocking(file.fileno(), True)
        return file.read(most + 1)


def read_json(
    text: str, *, undecodable: bool = False, own: bool = False, halves: bool = False, unique: bool = False
) -> Any:
    """The value in `text`. `unique`: a key that stands twice is a fault (else the last one counts, as in Go).

    `undecodable`: bytes that are not UTF-8, which travel as U+DC80 to U+DCFF, may stand in its strings. `own`: gpunode
    wrote it, and such bytes are spelled `\\udc80` in it. `halves`: other halves of surrogate pairs stay as they are
    too, for who does not print what holds one. Raises NotRead.
    """
    _refuse_large(text)
    if not (undecodable or own):
        _refuse_undecodable(text)
    _refuse_deep_json(text)
    if not halves:
        _refuse_halves(text, own=own)
    hook = _once if unique else None
    try:
        return json.loads(
            text, parse_constant=_constant, parse_int=_whole, parse_float=_decimal, object_pairs_hook=hook
        )
    except json.JSONDecodeError as fault:
        raise _at(text, fault.pos, fault.msg) from None
    except _Refused as fault:
        raise _at(text, _place_of(text, fault), str(fault)) from None
    except _Twice as fault:
        raise StandsTwice(f"key {json.dumps(fault.args[0][:60])} stands twice") from None
    except RecursionError:
        raise _deep(text, 0) from None


def read_toml(text: str) -> dict[str, Any]:
    """The table in `text`. Raises NotRead."""
    _refuse_large(text)
    _refuse_undecodable(text)
    if long := _long_key(text):
        raise _deep(text, long.start())
    tomllib = _tomllib()
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise _deep(text, 0) from None
    except (ValueError, OverflowError) as fault:  # TOMLDecodeError is one; a number of 5000 digits gives a plain one
        found = _TOML_PLACE.search(str(fault))
        if found and found[1]:
            raise NotRead(str(fault)[: found.start()], int(found[1]), int(found[2])) from None
        raise _at(text, len(text), _TOML_PLACE.sub("", str(fault))) from None
    _refuse_deep_or_long(text, table)
    return table


def read_yaml(text: str) -> yaml.Node | None:
    """The node graph of one YAML document, scalars in their own spelling; None for an empty one. Raises NotRead.

    An alias of a list or mapping is refused: ten lines of them can stand for a billion values.
    """
    import yaml

    _refuse_large(text)
    _refuse_undecodable(text)
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_yaml_loader())
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        what = fault.problem or fault.context or "it cannot be read"
        raise NotRead(what, mark.line + 1 if mark else 1, mark.column + 1 if mark else 1) from None
    except yaml.reader.ReaderError as fault:
        raise _at(text, fault.position, fault.reason) from None
    except yaml.YAMLError:
        raise NotRead("it cannot be read") from None
    except RecursionError:
        raise _deep(text, 0) from None
    except (ValueError, OverflowError) as fault:  # "\UFFFFFFFF", %YAML with a version of 5000 digits
        raise NotRead(f"it cannot be read ({fault})") from None
    return node


def read_yaml_words(text: str) -> object:
    """One YAML document as dicts, lists and texts, which are spelled as they stand: 4 is "4", nothing is "".

    Of a key that stands twice the last one counts. Raises NotRead.
    """
    node = read_yaml(text)
    return "" if node is None else _words(node)


def whole_number(text: str | None) -> int | None:
    """`text` as a number of at most 18 ASCII digits, with a minus or none; None for anything else.

    str.isdigit takes "²", int takes "١", and a text of 5000 digits is a ValueError.
    """
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,18}", text) else None


def hex_number(text: str | None) -> int | None:
    """`text` as at most 16 hexadecimal digits, with 0x or without; None for anything else."""
    return int(text, 16) if text and re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,16}", text) else None


def _words(node: yaml.Node) -> object:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return {key.value: _words(value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    return [_words(one) for one in node.value] if isinstance(node, yaml.SequenceNode) else str(node.value)


class _Refused(Exception):
    """Out of the JSON decoder's hooks, which do not know where they are; args[1] is the literal."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Twice(Exception):
    pass


def _constant(word: str) -> NoReturn:
    raise _Refused(f"{word} is not JSON", word)


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise _Refused(f"a number of {len(text)} digits", text)
    return int(text)


def _decimal(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _Refused("a number too large to be kept", text)
    return number


def _refuse_halves(text: str, *, own: bool) -> None:
    for escape in _ESCAPE.finditer(text):
        if escape["lone"] and not (own and _is_byte(escape)):
            raise _at(text, escape.start(), f"{escape[0]} is half of a surrogate pair, and no character")


def _is_byte(escape: re.Match[str]) -> bool:
    """Whether it is one undecodable byte, as surrogateescape carries it (PEP 383)."""
    return bool(re.fullmatch(r"udc[89a-f][0-9a-f]", escape["lone"], re.IGNORECASE))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _place_of(text: str, fault: _Refused) -> int:
    """Where the literal that a hook refused stands."""
    if str(fault).endswith("is not JSON"):
        return next((found.start() for found in _JSON_CONSTANT.finditer(text) if found["found"]), 0)
    return max(text.find(fault.args[1]), 0)


def _refuse_large(text: str) -> None:
    if len(text) > LARGEST:
        raise NotRead(f"over {LARGEST} characters")


def _refuse_undecodable(text: str) -> None:
    # Undecodable bytes travel as lone surrogates (PEP 383).
    if not text.isascii() and (found := _UNDECODABLE.search(text)):
        raise _at(text, found.start(), "this byte is not UTF-8")


def _refuse_deep_json(text: str) -> None:
    if text.count("{") + text.count("[") <= DEEPEST:  # most texts: a journal's line has two of them
        return
    depth = 0
    for token in _JSON_DEPTH.finditer(text):
        if token.lastgroup == "open":
            depth += 1
            if depth > DEEPEST:
                raise _deep(text, token.start())
        elif token.lastgroup == "close":
            depth -= 1


def _long_key(text: str) -> re.Match[str] | None:
    """A dotted key of more than DEEPEST parts; it stands on one line, and most lines have no dot at all."""
    return _LONG_KEY.search(text) if any(line.count(".") >= DEEPEST for line in text.split("\n")) else None


def _refuse_deep_or_long(text: str, table: dict[str, Any]) -> None:
    """Too many lists and tables in each other, or a number of too many digits: 0xfff... is read, and fails when it is
    written.
    """
    for depth, level in enumerate(_levels(table)):
        if depth > DEEPEST:
            raise _deep(text, 0)
        long = any(type(one) is int and abs(one) >= _TOO_LONG for one in level)
        if long and (digits := _LONG_NUMBER.search(text)):
            raise _at(text, digits.start(), f"a number of more than {MOST_DIGITS} digits")


def _levels(value: object) -> Iterator[list[Any]]:
    """All values in `value` by their depth, itself first; without recursion."""
    level: list[Any] = [value]
    while level:
        yield level
        containers = (one for one in level if isinstance(one, (dict, list)))
        level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]


@cache
def _tomllib() -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    return tomllib


@cache
def _yaml_loader() -> Any:
    import yaml

    class Bounded(yaml.SafeLoader):
        """Refuses depth, aliases of lists and mappings, and scalars that cannot be printed."""

        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            mark: Any = event.start_mark
            if self.depth > DEEPEST:
                raise yaml.composer.ComposerError(None, None, "nested too deeply", mark)
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            if isinstance(event, yaml.AliasEvent) and not isinstance(node, yaml.ScalarNode):
                raise yaml.composer.ComposerError(None, None, "an alias of a list or mapping", mark)
            if isinstance(node, yaml.ScalarNode) and _UNDECODABLE.search(node.value):
                raise yaml.composer.ComposerError(None, None, "half of a surrogate pair", mark)
            return node

    return Bounded


def _deep(text: str, at: int) -> NotRead:
    return _at(text, at, "nested too deeply")


def _at(text: str, at: int, what: str) -> NotRead:
    start = text.rfind("\n", 0, at)
    return NotRead(what, text.count("\n", 0, at) + 1, at - start, at=at)
