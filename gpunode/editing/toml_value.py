"""A value's own text, changed where the value changes: items of lists, entries of inline tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpunode.editing import toml_spell as spell
from gpunode.editing.plain import same
from gpunode.editing.toml_scan import STRING, line_end, margin, path_at
from gpunode.regex import regex
from gpunode.values import dataclass

Span = tuple[int, int]
_TOKEN = regex(
    rf"(?P<string>{STRING})|(?P<comment>#[^\n]*)|(?P<open>[\[{{])|(?P<close>[\]}}])|(?P<comma>,)"
    r"|(?P<bare>[^\s,#\[\]{}\"']+)",
    re.S,
)

_BLANKS, _LINE_END = regex(r"[ \t]*"), regex(r"\r?\n")


@dataclass(frozen=True)
class _Item:
    """One item of a list, or one entry of an inline table."""

    start: int
    end: int
    comma: int | None = None  # where the comma behind it stands


def changed(text: str, old: object, new: object) -> str:
    """`text`, which reads as `old`, made to read as `new`; what is equal keeps its bytes."""
    if same(old, new):
        return text
    if isinstance(old, dict) and isinstance(new, dict) and text.startswith("{"):
        return _table(text, old, new)
    if isinstance(old, list) and isinstance(new, list) and text.startswith("["):
        return _list(text, old, new)
    return spell.in_quotes_of(text, new)


def _table(text: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Entries with dotted keys included: `{ a.b = 1 }`."""
    items = _items(text)
    kept, gone, edits = [], [], []
    written = set()
    for item in items:
        path, _, at = path_at(text, item.start)
        start = _TOKEN.search(text, at + 1).start()  # type: ignore[union-attr]  # the value, behind the equals sign
        written.add(path)
        before, (there, after) = _at(old, path)[1], _at(new, path)
        if not there:
            gone.append(item)
            continue
        kept.append(item)
        edits.append((start, item.end, changed(text[start : item.end], before, after)))
    new_entries = sorted(_new(old, new, written), key=lambda entry: isinstance(entry[1], dict))
    added = [f"{spell.dotted(path)} = {spell.value(value)}" for path, value in new_entries]
    if not kept:
        return f"{{ {', '.join(added)} }}" if added else "{}"
    edits += _without(text, items, gone)
    edits += [(kept[-1].end, kept[-1].end, f", {entry}") for entry in added]
    return spliced(text, edits)


def _at(table: Mapping[str, Any], path: Sequence[str]) -> tuple[bool, Any]:
    """(whether something is there, what)."""
    value: Any = table
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False, None
        value = value[name]
    return True, value


def _new(
    old: Mapping[str, Any], new: Mapping[str, Any], written: set[tuple[str, ...]], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What is nowhere in `old`, but for what entries of their own take in."""
    for name, value in new.items():
        path = (*above, name)
        if name not in old:
            yield path, value
        elif path not in written and isinstance(value, dict) and isinstance(old[name], dict):
            yield from _new(old[name], value, written, path)


def _list(text: str, old: list[Any], new: list[Any]) -> str:
    wanted = {repr(value) for value in new}
    stays = [repr(value) in wanted for value in old]
    kept = [value for value, stay in zip(old, stays, strict=True) if stay]
    items = _items(text)
    if not same(kept, new[: len(kept)]) or len(items) != len(old):
        return spell.value(new)
    gone = [item for item, stay in zip(items, stays, strict=True) if not stay]
    return _with_more(spliced(text, _without(text, items, gone)), new[len(kept) :])


def _with_more(text: str, values: list[Any]) -> str:
    if not values:
        return text
    items, more = _items(text), [spell.value(value) for value in values]
    if not items:
        return f"[{', '.join(more)}{text[1:]}"
    last = items[-1]
    if "\n" not in text[last.end :]:
        return spliced(text, [(last.end, last.end, "".join(f", {one}" for one in more))])
    # A line for each, below the last one and the comment behind it.
    end = text.index("\n", last.end if last.comma is None else last.comma) + 1
    between = f",{line_end(text[:end])}"
    lines = [f"{_margin_of(text, last)}{one}{between}" for one in more]
    if last.comma is None:
        lines[-1] = lines[-1].removesuffix(between) + between[1:]
    return spliced(text, [(last.end, last.end, "," if last.comma is None else ""), (end, end, "".join(lines))])


def _margin_of(text: str, item: _Item) -> str:
    line = text[text.rfind("\n", 0, item.start) + 1 :]
    return margin(line) if "\n" in text[: item.start] else ""


def _without(text: str, items: Sequence[_Item], gone: Sequence[_Item]) -> Iterator[tuple[int, int, str]]:
    """Takes items out with their commas; a line that had nothing else goes with them, its comment does not."""
    out = set(gone)
    for item in gone:
        start, end = item.start, item.end if item.comma is None else item.comma + 1
        blanks = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
        end = blanks if item.comma is not None or text[blanks] in "#\r\n" else end  # those of a bracket are its own
        line = text.rfind("\n", 0, start) + 1
        rest = _LINE_END.match(text, end)
        if line and rest and not text[line:start].strip():
            start, end = line, rest.end()
        yield start, end, ""
    last = next((item for item in reversed(items) if item not in out), None)
    if last and last.comma is not None and items[-1].comma is None:
        end = _BLANKS.match(text, last.comma + 1).end()  # type: ignore[union-attr]
        if text[end] not in "#\r\n":  # the comma of a line may stay: a list may end with one
            yield last.comma, end, ""


def _items(text: str) -> list[_Item]:
    """Of a list or an inline table, in order."""
    found: list[_Item] = []
    depth, start, end = 0, -1, -1
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        depth -= kind == "close"
        if kind == "comma" and depth == 1:
            found.append(_Item(start, end, token.start()))
            start = -1
        elif kind != "comment" and depth:
            start, end = token.start() if start < 0 else start, token.end()
        depth += kind == "open"
    return [*found, _Item(start, end)] if start >= 0 else found


def spliced(text: str, edits: Sequence[tuple[int, int, str]] | Iterator[tuple[int, int, str]]) -> str:
    """`text` with each (start, end) replaced; those at one place in the order in which they are given."""
    parts, at = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        parts += [text[at:start], new]
        at = max(at, end)
    return "".join([*parts, text[at:]])
