"""Comments and blank lines where a reader looks for them, after tomlkit has put new tables in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpunode.editing.toml_scan import Statement, comments, statements

HEADERS = ("table", "array")


def tidied(before: str, after: str) -> str:
    """`after` with every comment that was dropped on the way, without those that tomlkit made up, and with empty lines.

    A dropped comment becomes a line of its own, above what it stood at or before. A table that had an empty line above
    it has one again when something new stands there.
    """
    old = statements(before)
    new = _with_their_tables(old, statements(after))
    gone = Counter(comments(before)) - Counter(comments(after))
    place = {statement.path: index for index, statement in reversed([*enumerate(new)]) if statement.path}
    places = _next_places(old, place, len(new))
    above: list[list[str]] = [[] for _ in range(len(new) + 1)]
    margins = [margin(statement.text) for statement in new] + [""]
    spaced: set[tuple[str, ...]] = set()
    for index, statement in enumerate(old):
        at = places[index]
        for comment in statement.comments:
            if gone[comment]:
                gone[comment] -= 1
                above[at].append(f"{margins[at]}{comment}\n")
        if statement.kind in ("table", "array") and index and old[index - 1].kind == "blank":
            spaced.add(statement.path)
    headers = {statement.path for statement in old if statement.kind in ("table", "array")}
    lines = []
    for index, statement in enumerate(new):
        header = statement.kind in ("table", "array")
        if header and statement.path in spaced and new[index - 1].kind == "key":
            lines.append("\n")
        # For the header of a table that had none, tomlkit copies the comment of another.
        text = statement.text
        if header and statement.path not in headers and statement.comments:
            text = text.rstrip().removesuffix(statement.comments[-1]).rstrip() + "\n"
        lines += [*above[index], text]
    return "".join([*lines, *above[-1]])


def _with_their_tables(old: Sequence[Statement], new: Sequence[Statement]) -> tuple[Statement, ...]:
    """`new` with each comment that stood right above a table there again, where something new came in between.

    Only one with an empty line above it: without, it may belong to the end of the table before.
    """
    known = {statement.path for statement in old}
    place = _tables(new)
    for block, header in _headed(old):
        below = place.get(header)
        start = _between(new, block, below, known) if below is not None else None
        if start is None or below is None:
            continue
        end = start + len(block)
        gap = () if new[below - 1].kind == "blank" else (Statement("blank", "\n", 0),)
        new = (*new[:start], *new[end:below], *gap, *new[start:end], *new[below:])
        place = _tables(new)
    return tuple(new)


def _tables(found: Sequence[Statement]) -> dict[tuple[str, ...], int]:
    """Where each table's header stands, of those that stand there once."""
    count = Counter(s.path for s in found if s.kind == "table")
    return {s.path: index for index, s in enumerate(found) if s.kind == "table" and count[s.path] == 1}


def _next_places(old: Sequence[Statement], place: Mapping[tuple[str, ...], int], end: int) -> list[int]:
    """For each statement of `old`: where it, or the next one that is still there, stands now."""
    places = []
    for statement in reversed(old):
        end = place.get(statement.path, end)
        places.append(end)
    return places[::-1]


def _headed(old: Sequence[Statement]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """(the comment lines right above a table and below an empty line, the table's path)."""
    for index, statement in enumerate(old):
        if statement.kind != "table":  # walking back from each of many comments takes the square of their number
            continue
        start = index
        while start and old[start - 1].kind == "comment":
            start -= 1
        if 0 < start < index and old[start - 1].kind == "blank":
            yield [s.text for s in old[start:index]], statement.path


def _between(new: Sequence[Statement], block: Sequence[str], below: int, known: set[tuple[str, ...]]) -> int | None:
    """Where `block` stands when nothing but what is new is between it and the header at `below`."""
    end = below
    while end and new[end - 1].kind != "comment" and (not new[end - 1].path or new[end - 1].path not in known):
        end -= 1
    start = end - len(block)
    return start if end < below and start >= 0 and [s.text for s in new[start:end]] == list(block) else None


def margin(text: str) -> str:
    """The blanks before the first letter, on its own line."""
    return text[: len(text) - len(text.lstrip())].rpartition("\n")[2]
