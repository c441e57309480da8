"""How a new key or value is written in TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _basic(name)


def dotted(names: Iterable[str]) -> str:
    return ".".join(map(key, names))


def value(plain: object) -> str:
    """In one line: tables and lists are inline."""
    if isinstance(plain, str):
        return _basic(plain)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, float):
        return repr(plain) if math.isfinite(plain) else repr(plain).removesuffix("inity")
    if isinstance(plain, list):
        return f"[{', '.join(map(value, plain))}]"
    if isinstance(plain, dict):
        return _inline(plain)
    return plain.isoformat() if hasattr(plain, "isoformat") else str(plain)


def in_quotes_of(old: str, plain: object) -> str:
    """`plain`; a text in single quotes where the one it replaces has them."""
    literal = old.startswith("'") and not old.startswith("'''")
    if literal and isinstance(plain, str) and plain.isprintable() and "'" not in plain:
        return f"'{plain}'"
    return value(plain)


def _inline(table: Mapping[str, Any]) -> str:
    return f"{{ {', '.join(f'{key(name)} = {value(inner)}' for name, inner in table.items())} }}" if table else "{}"


def _basic(text: str) -> str:
    """JSON spells a text as TOML does, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
