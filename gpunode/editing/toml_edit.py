"""A TOML file's text made to read as something else, statement by statement: what is equal keeps its bytes.

First what is gone goes and what is another value is spelled in its place, then what is new is put where such things
stand already: as tables where there are tables, as dotted keys where there are those, inside an inline table within it.
No comment goes: that of a statement which does becomes a line of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpunode.editing import toml_value
from gpunode.editing.plain import same
from gpunode.editing.toml_place import added
from gpunode.editing.toml_scan import Statement, comments, line_end, margin, statements
from gpunode.values import dataclass

Path = tuple[str, ...]


@dataclass(frozen=True)
class _Differences:
    """Paths of what is to change; of tables only those that come or go as a whole."""

    gone: frozenset[Path]  # a table that becomes a value, or a value a table, is gone and new
    new: tuple[Path, ...]
    other: frozenset[Path]
    above: frozenset[Path]  # all that lead to a change


def edited(text: str, have: Mapping[str, Any], want: Mapping[str, Any]) -> str:
    """`text`, which reads as `have` and ends with a line's end, made to read as `want`."""
    found = tuple(_differences(have, want))
    gone = frozenset(path for kind, path in found if kind == "gone")
    new = tuple(path for kind, path in found if kind == "new")
    other = frozenset(path for kind, path in found if kind == "other")
    above = frozenset(path[:end] for _, path in found for end in range(1, len(path) + 1))
    change = _Differences(gone, new, other, above)
    left = _altered(statements(text), change, have, want)
    return "".join(added(left, {path: _at(want, path) for path in _still_new(left, change, want)}))


def _differences(have: Mapping[str, Any], want: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[str, Path]]:
    for key in (*have, *(key for key in want if key not in have)):
        path, old, new = (*above, key), have.get(key), want.get(key)
        if old is new:  # shared, as most of a large file is
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, path)
        elif key not in want:
            yield "gone", path
        elif key not in have:
            yield "new", path
        elif isinstance(old, dict) or isinstance(new, dict):
            yield from (("gone", path), ("new", path))
        elif not same(old, new):
            yield "other", path


def _at(plain: Mapping[str, Any], path: Path) -> Any:
    value: Any = plain
    for key in path:
        value = value[key]
    return value


def _altered(
    found: tuple[Statement, ...], change: _Differences, have: Mapping[str, Any], want: Mapping[str, Any]
) -> list[Statement]:
    """The statements that stay, with their new values; of those that go the comments."""
    kept: list[Statement] = []
    arrays: set[Path] = set()
    lonely = False  # the last one kept is an empty line, and what stood below it went
    for statement in found:
        if statement.kind == "array":
            arrays.add(statement.path)
        if _goes(statement, change, arrays):
            left = list(_comment_lines(statement, Counter(statement.comments)))
            lonely = not left and (lonely or (bool(kept) and kept[-1].kind == "blank"))
            kept += left
            continue
        if lonely and statement.kind == "blank":
            kept.pop()  # that line came with the table below it
        lonely = False
        if statement.kind == "key" and statement.path in change.above:
            kept += _with_value(statement, _at(have, statement.path), _at(want, statement.path))
        else:
            kept.append(statement)
    if lonely:
        kept.pop()
    return kept


def _goes(statement: Statement, change: _Differences, arrays: set[Path]) -> bool:
    """Whether the statement is, or is below, what is gone; or tables in a list that is another now."""
    for end in range(1, len(statement.path) + 1):
        path = statement.path[:end]
        if path not in change.above:
            return False
        if path in change.gone or (path in change.other and path in arrays):
            return True
    return False


def _with_value(statement: Statement, old: object, new: object) -> Iterator[Statement]:
    start, end = statement.value
    value = toml_value.changed(statement.text[start:end], old, new)
    text = statement.text[:start] + value + statement.text[end:]
    yield from _comment_lines(statement, Counter(statement.comments) - Counter(comments(text)))
    yield statement._replace(text=text, value=(start, start + len(value)), comments=comments(text))


def _comment_lines(statement: Statement, lost: Counter[str]) -> Iterator[Statement]:
    for comment in lost.elements():
        text = f"{margin(statement.text)}{comment}{line_end(statement.text)}"
        yield Statement("comment", text, statement.line, comments=(comment,))


def _still_new(left: list[Statement], change: _Differences, want: Mapping[str, Any]) -> Iterator[Path]:
    """The paths that no statement of `left` takes in; of a table whose last statement went, the table itself."""
    there = _with_above(statement.path for statement in left)
    inline = {statement.path for statement in left if statement.kind == "key"}
    arrays = (path for path in change.other if path not in there)
    found: dict[Path, None] = {}
    for path in (*change.new, *(path[:-1] for path in change.gone), *arrays):
        if any(path[:end] in inline for end in range(1, len(path) + 1)):
            continue
        while path[:-1] not in there:
            path = path[:-1]
        if path not in there and _is_in(want, path):
            found[path] = None
    yield from found


def _with_above(paths: Iterable[Path]) -> set[Path]:
    """The paths, and each that leads to one of them."""
    found: set[Path] = {()}
    for path in paths:
        while path not in found:
            found.add(path)
            path = path[:-1]
    return found


def _is_in(plain: Mapping[str, Any], path: Path) -> bool:
    value: Any = plain
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True
