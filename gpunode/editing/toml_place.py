"""Where in a TOML file something new goes, and how it is written there: as its neighbours are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpunode.editing import toml_spell as spell
from gpunode.editing.toml_scan import Statement, line_end, margin

Path = tuple[str, ...]
Placed = tuple[int, list[str], bool]  # before which statement, the lines, whether empty lines stand around them
HEADERS = ("table", "array")


def added(found: Sequence[Statement], new: Mapping[Path, Any]) -> list[str]:
    """The texts of the statements, with what is new between them; what it goes into is there."""
    above: dict[int, list[str]] = {}  # by the statement below
    for at, lines, spaced in _placed(found, new):
        near = found[at - 1].text if at else found[0].text if found else "\n"
        already = above.setdefault(at, [])
        new_lines = _spaced(lines, already, found, at) if spaced else lines
        already += [f"{line}{line_end(near)}" for line in new_lines]
    texts = (*(statement.text for statement in found), "")
    return [part for index, text in enumerate(texts) for part in (*above.get(index, ()), text)]


def _spaced(lines: list[str], above: Sequence[str], found: Sequence[Statement], at: int) -> list[str]:
    """With an empty line between a table and its neighbours."""
    before = not above[-1].strip() if above else not at or found[at - 1].kind == "blank"
    after = at == len(found) or found[at].kind == "blank"
    return [*([] if before else [""]), *lines, *([] if after else [""])]


def _placed(found: Sequence[Statement], new: Mapping[Path, Any]) -> Iterator[Placed]:
    """Keys first: what stands below a header belongs to it."""
    tables: list[Placed] = []
    keys: dict[Path, dict[str, Any]] = {}
    for path, value in sorted(new.items(), key=lambda item: isinstance(item[1], dict)):
        beside = _dotted(found, path[:-1])
        if beside is not None:
            yield beside + 1, list(_as_dotted(found[beside], path, value)), False
        elif isinstance(value, dict):
            tables.append(_as_table(found, path, value))
        else:
            keys.setdefault(path[:-1], {})[path[-1]] = value
    headers = {statement.path: index for index, statement in enumerate(found) if statement.kind == "table"}
    for table, values in keys.items():
        lines = [f"{spell.key(key)} = {spell.value(value)}" for key, value in values.items()]
        if not table:
            yield _root(found), lines, False
        elif table in headers:
            yield _in_table(found, headers[table], lines)
        else:
            tables.append(_with_header(found, table, lines))
    yield from tables


def _dotted(found: Sequence[Statement], table: Path) -> int | None:
    """The last key that makes `table` by dots."""
    return next(
        (
            index
            for index in range(len(found) - 1, -1, -1)
            if found[index].kind == "key"
            and found[index].path[: len(table)] == table
            and len(found[index].path) - len(found[index].keys) < len(table) < len(found[index].path)
        ),
        None,
    )


def _as_dotted(beside: Statement, path: Path, value: object) -> Iterator[str]:
    """Lines like the one of `beside`, which names the table above `path` in the same words."""
    names = beside.keys[: len(path) - 1 - (len(beside.path) - len(beside.keys))]
    prefix = beside.text[names[0][0] : names[-1][1]]
    for rest, inner in _leaves(value, path[-1:]):
        yield f"{margin(beside.text)}{prefix}.{spell.dotted(rest)} = {spell.value(inner)}"


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _root(found: Sequence[Statement]) -> int:
    """Above all tables: right below the keys that are there; else below the opening comment."""
    root = next((i for i, statement in enumerate(found) if statement.kind in HEADERS), len(found))
    keys = [i + 1 for i in range(root) if found[i].kind == "key"]
    blank = next((i for i in range(root) if found[i].kind == "blank"), None if root < len(found) else root)
    return keys[-1] if keys else blank or 0


def _last_key(found: Sequence[Statement], header: int) -> int:
    """The last key of the table at `header`, or its header."""
    last = header
    for index in range(header + 1, len(found)):
        if found[index].kind in HEADERS:
            break
        last = index if found[index].kind == "key" else last
    return last


def _in_table(found: Sequence[Statement], header: int, lines: Sequence[str]) -> Placed:
    last = _last_key(found, header)
    indent = margin(found[last].text) if last > header else _below_header(margin(found[header].text))
    return last + 1, [f"{indent}{line}" for line in lines], False


def _with_header(found: Sequence[Statement], table: Path, lines: Sequence[str]) -> Placed:
    """A header for a table that only those below it name, above the first of them and the comment on it."""
    first = next(i for i, s in enumerate(found) if s.kind in HEADERS and s.path[: len(table)] == table)
    indent = margin(found[first].text)
    keys = [f"{_below_header(indent)}{line}" for line in lines]
    return _above_comments(found, first), [f"{indent}[{_named(found[first], table)}]", *keys], not indent


def _named(like: Statement, path: Path) -> str:
    """`path` as it is spelled in the header `like`, as far as that leads."""
    shared = sum(1 for end in range(1, len(path) + 1) if like.path[:end] == path[:end])
    prefix = like.text[like.keys[0][0] : like.keys[shared - 1][1]] if shared else ""
    return ".".join(filter(None, (prefix, spell.dotted(path[shared:]))))


def _above_comments(found: Sequence[Statement], index: int) -> int:
    while index and found[index - 1].kind == "comment":
        index -= 1
    return index


def _as_table(found: Sequence[Statement], path: Path, value: Mapping[str, Any]) -> Placed:
    """With a header, below the last table that shares most of its path, and indented as its siblings are."""
    headers = [index for index, statement in enumerate(found) if statement.kind in HEADERS]
    shared = next(
        (end for end in range(len(path) - 1, 0, -1) if any(found[i].path[:end] == path[:end] for i in headers)), 0
    )
    near = [i for i in headers if shared and found[i].path[:shared] == path[:shared]]
    siblings = [i for i in near if len(found[i].path) > shared]
    like = found[(siblings or near)[-1]] if near else None
    indent = _indent([found[i] for i in (siblings or near)])
    indent = indent if siblings else _below_header(indent)
    at = _below(found, near[-1]) if near else len(found)
    lines = list(_table(_named(like, path) if like else spell.dotted(path), value, indent))
    spaced = not indent or any(i and found[i - 1].kind == "blank" for i in siblings)
    return at, lines, spaced


def _indent(siblings: Sequence[Statement]) -> str:
    shortest = min((len(s.path) for s in siblings), default=0)
    return next((margin(s.text) for s in siblings if len(s.path) == shortest and margin(s.text)), "")


def _below(found: Sequence[Statement], header: int) -> int:
    """The place below a table's last key and the comment at its end; above one on the next table, and its blanks."""
    last = _last_key(found, header) + 1
    end = last
    while end < len(found) and found[end].kind == "comment":
        end += 1
    next_is_header = end < len(found) and found[end].kind in HEADERS
    return last if next_is_header and margin(found[end].text) == margin(found[end - 1].text) else end


def _table(name: str, value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """The lines of a table: keys first and tables after them, so that none of the keys lands in a table."""
    tables = {key: inner for key, inner in value.items() if isinstance(inner, dict)}
    bare = bool(value) and len(tables) == len(value)  # a table of nothing but tables needs no header
    below = indent if bare else _below_header(indent)
    if not bare:
        yield f"{indent}[{name}]"
        yield from (f"{below}{spell.key(k)} = {spell.value(v)}" for k, v in value.items() if k not in tables)
    for index, (key, inner) in enumerate(tables.items()):
        if not indent and (index or not bare):
            yield ""
        yield from _table(f"{name}.{spell.key(key)}", inner, below)


def _below_header(indent: str) -> str:
    """Files that indent headers indent what is below them more; the others indent nothing."""
    return indent + ("\t" if indent.endswith("\t") else "  ") if indent else ""
