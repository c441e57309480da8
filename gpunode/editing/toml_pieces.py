"""In how many pieces the tables of a TOML file stand: tomlkit puts such a table together anew at each of its pieces."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.editing.toml_scan import statements

# tomlkit 0.15 reads 300 pieces in half a second and a third of them in a tenth of that. Configurations have a handful.
MOST_PIECES = 100
Path = tuple[str, ...]


def is_in_too_many_pieces(text: str) -> bool:
    return sum(1 for _ in pieces(text)) > MOST_PIECES


def pieces(text: str) -> Iterator[Path]:
    """The path of each dotted key, of each header below one, and of each that returns to a table that was left."""
    table: Path = ()
    left: set[Path] = set()
    dotted: set[Path] = set()
    for statement in statements(text):
        path = statement.path
        if statement.kind == "key" and len(path) > len(table) + 1:
            dotted.update(path[:end] for end in range(len(table) + 1, len(path)))
            yield path
        elif statement.kind in ("table", "array"):
            above = [path[:end] for end in range(1, len(path) + 1)]
            # Of the tables at the root tomlkit keeps no pieces.
            if any(one in dotted or (len(one) > 1 and one in left and table[: len(one)] != one) for one in above):
                yield path
            left.update(above)
            table = path
