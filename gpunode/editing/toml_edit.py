"""The edits of a TOML text that tomlkit makes, gentlest first; toml_text.py believes none of them unread.

A file of its own, since tomlkit takes longer to load than most commands take, and is needed where something is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, InlineTable, Item, Null, String, Table, Whitespace

from gpunode import foreign
from gpunode.editing.plain import Plain, same
from gpunode.editing.toml_layout import margin
from gpunode.editing.toml_scan import statements


def attempts(body: str, have: Plain, want: Plain, ends: list[tuple[str, ...] | None]) -> Iterator[str]:
    """Edited texts, gentlest first; those that tomlkit cannot make are left out."""
    for end in ends:
        try:
            document: Any = tomlkit.parse(body)
            now = have
            if end is not None:
                _write_anew(document, want, end)
                now = foreign.read_toml(tomlkit.dumps(document))
            _align(document, now, want)
            edited = tomlkit.dumps(document)
        except (TOMLKitError, KeyError, ValueError, TypeError, AttributeError, IndexError, RuntimeError):
            # tomlkit says "cannot" in all these types. The next attempt, or the refusal, is the answer to each.
            continue
        yield edited


def _align(node: Any, have: Mapping[str, Any], want: Mapping[str, Any]) -> None:
    """Change `node`, which reads as `have`, until it reads as `want`; keys that are equal are not touched."""
    for key in have.keys() - want.keys():
        del node[key]
    for key, value in want.items():
        old = have.get(key)
        if key not in have:
            _add(node, key, value)
        elif isinstance(value, dict) and isinstance(old, dict):
            _align(node[key], old, value)
        elif same(old, value):
            continue
        elif isinstance(value, list) and isinstance(old, list) and value == [old[i] for i in _kept(old, value)]:
            # Taken out one by one, the others keep their lines and comments.
            kept = frozenset(_kept(old, value))
            for index in reversed([i for i in range(len(old)) if i not in kept]):
                del node[key][index]
        elif isinstance(value, list) and isinstance(old, list) and old and value[: len(old)] == old:
            for item in value[len(old) :]:
                node[key].append(item)
        else:
            node[key] = _quoted_as(node[key], _in_one_go(value))


def _kept(old: list[Any], value: list[Any]) -> list[int]:
    """Places of those items of `old` that `value` has as well."""
    wanted = {repr(item) for item in value}
    return [index for index, item in enumerate(old) if repr(item) in wanted]


def _quoted_as(old: Any, value: Any) -> Any:
    """A text in the quotes of the one it takes the place of."""
    literal = isinstance(old, String) and old.as_string().startswith("'") and not old.as_string().startswith("'''")
    if literal and isinstance(value, str) and value.isprintable() and "'" not in value:
        return tomlkit.string(value, literal=True)
    return value


def _write_anew(document: Any, want: Plain, end: tuple[str, ...]) -> None:
    """Replace what stands at `end` by ordinary tables."""
    node, value = document, want
    for key in end[:-1]:
        node, value = node[key], value[key]
        if isinstance(node, InlineTable):
            raise TypeError("an inline table cannot hold tables")
    if end[-1] in node:
        del node[end[-1]]
    node[end[-1]] = _table(value[end[-1]], "")


def _table(value: Mapping[str, Any], header: str) -> Table:
    """An ordinary table whose header is indented by `header`, and its keys by two more where that is anything.

    Keys first and tables after them, so that none of the keys lands in a table.
    """
    # A table of nothing but tables needs no header of its own.
    bare = bool(value) and all(isinstance(v, dict) for v in value.values())
    table = tomlkit.table(is_super_table=bare)
    if header:
        table.trivia.indent = header
    for key, inner in sorted(value.items(), key=lambda item: isinstance(item[1], dict)):
        below = _deeper(header) if header and not bare else header
        table.add(key, _table(inner, below) if isinstance(inner, dict) else _in_one_go(inner))
        _indent(table, key, below)
    return table


def _add(node: Any, key: str, value: Any) -> None:
    """A new key or table in `node`, indented as its siblings of the same kind are."""
    siblings = [child for child in _items(node) if isinstance(child, Table) == isinstance(value, dict)]
    indent = next((found for s in siblings if (found := margin(s.trivia.indent))), "")
    if not siblings and isinstance(node, Table) and margin(node.trivia.indent):
        indent = _deeper(margin(node.trivia.indent))
    node[key] = _table(value, indent) if isinstance(value, dict) else _in_one_go(value)
    _indent(node, key, indent)


def _in_one_go(value: Any) -> Any:
    """A list as tomlkit would write it, but read from text: put together item by item it takes the square of their
    number, since tomlkit counts all anew at each (Array._reindex)."""
    return tomlkit.value(_spelled(value)) if isinstance(value, list) and _has_no_tables(value) else value


def _spelled(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_spelled, value))}]"
    return str(tomlkit.item(value).as_string())


def _has_no_tables(value: object) -> bool:
    return all(map(_has_no_tables, value)) if isinstance(value, list) else not isinstance(value, dict)


def _deeper(indent: str) -> str:
    return indent + ("\t" if indent.endswith("\t") else "  ")


def _items(node: Any) -> list[Any]:
    body = node.value.body if isinstance(node, Table) else []
    return [item for _, item in body if not isinstance(item, (Comment, Null, Whitespace))]


def _indent(node: Any, key: str, indent: str) -> None:
    # tomlkit gives every new item the indent of its table's header.
    if isinstance(node, Table):
        item = node.value.item(key)
        # For a table that starts at the margin it is the empty line above, which is kept.
        if isinstance(item, Item) and (indent or not isinstance(item, Table)):
            item.trivia.indent = indent


def with_root_keys(text: str, have: Mapping[str, Any], want: Mapping[str, Any]) -> str:
    """The keys that are new above all tables, right below those that are there; else below the opening comment."""
    new = {key: value for key, value in want.items() if key not in have and not isinstance(value, dict)}
    found = statements(text)
    root = next((i for i, statement in enumerate(found) if statement.kind in ("table", "array")), len(found))
    keys = [i + 1 for i in range(root) if found[i].kind == "key"]
    blank = next((i for i in range(root) if found[i].kind == "blank"), None if root < len(found) else root)
    at = keys[-1] if keys else blank or 0
    lines = [f"{tomlkit.key(key).as_string()} = {tomlkit.item(value).as_string()}\n" for key, value in new.items()]
    return "".join([*(s.text for s in found[:at]), *lines, *(s.text for s in found[at:])])
