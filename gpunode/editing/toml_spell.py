"""How a new key or value is written in TOML: tomlkit spells names and plain values, in one line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tomlkit


def key(name: str) -> str:
    return tomlkit.key(name).as_string()


def dotted(names: Iterable[str]) -> str:
    return ".".join(map(key, names))


def value(plain: object) -> str:
    """In one line: tables and lists are inline."""
    if isinstance(plain, list):
        return f"[{', '.join(map(value, plain))}]"
    if isinstance(plain, dict):
        return _inline(plain)
    return tomlkit.item(plain).as_string()


def in_quotes_of(old: str, plain: object) -> str:
    """`plain`; a text in single quotes where the one it replaces has them."""
    literal = old.startswith("'") and not old.startswith("'''")
    if literal and isinstance(plain, str) and plain.isprintable() and "'" not in plain:
        return f"'{plain}'"
    return value(plain)


def _inline(table: Mapping[str, Any]) -> str:
    return f"{{ {', '.join(f'{key(name)} = {value(inner)}' for name, inner in table.items())} }}" if table else "{}"
