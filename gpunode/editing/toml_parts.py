"""The tables of a large TOML file that an edit is about; all others are set aside, byte for byte, and restored after.

tomlkit needs a second for some thousand lines, and more than twice that for twice as many. A run of tables that the
edit does not touch becomes one empty table, whose header is replaced by their text again once the edit is made.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpunode import foreign
from gpunode.editing.toml_scan import Statement, statements

Path = tuple[str, ...]
_STAND_IN = re.compile(r"^[ \t]*\[(?:[^\]\n]*\.)?gpunode-aside-([0-9]+)\][ \t]*\n", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A smaller file that stands for the whole one."""

    text: str
    want: dict[str, Any]  # what it should read as, like the whole one
    aside: tuple[str, ...]

    def whole(self, edited: str) -> str | None:
        """The whole file, from the edited part; None when a stand-in is missing, or is there twice."""
        if sorted(map(int, _STAND_IN.findall(edited))) != list(range(len(self.aside))):
            return None
        return _STAND_IN.sub(lambda found: self.aside[int(found[1])], edited)


def part_of(text: str, have: Mapping[str, Any], want: Mapping[str, Any]) -> Part | None:
    """What has to be seen of `text` to make `have` into `want`; None when that is nearly all of it."""
    found = statements(text)
    changes = tuple(_changes(have, want))
    related = _related(found, changes)
    lines: list[str] = []
    aside: list[str] = []
    for run, is_aside in _runs(found, related):
        if is_aside:
            lines.append(_stand_in(run, len(aside), have))
            aside.append("".join(statement.text for statement in run))
        else:
            lines += (statement.text for statement in run)
    if sum(map(len, aside)) * 2 < len(text):
        return None
    small = "".join(lines)
    return Part(small, _changed(foreign.read_toml(small), changes, want), tuple(aside))


def _changes(have: Mapping[str, Any], want: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    """The paths of all values that are another, new, or gone; of tables only those that are so as a whole."""
    for key in (*have, *(key for key in want if key not in have)):
        old, new = have.get(key), want.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(old, new, (*above, key))
        elif repr(old) != repr(new):
            yield (*above, key)


def _changed(plain: dict[str, Any], changes: Iterable[Path], want: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(plain)
    for path in changes:
        table, wanted = result, want
        for key in path[:-1]:
            table, wanted = table.setdefault(key, {}), wanted[key]
        if path[-1] in wanted:
            table[path[-1]] = copy.deepcopy(wanted[path[-1]])
        else:
            table.pop(path[-1], None)
    return result


def _related(found: Iterable[Statement], changes: Iterable[Path]) -> frozenset[Path]:
    """Headers of the tables with a change, of those above and below it, and of its first and last sibling.

    Siblings show how tables are indented there, and a new table goes below the last one.
    """
    headers = tuple(dict.fromkeys(s.path for s in found if s.kind in ("table", "array")))
    related = {path[:end] for path in changes for end in range(len(path))}
    whole = frozenset(changes)
    related |= {header for header in headers if any(header[:end] in whole for end in range(1, len(header) + 1))}
    for parent in {path[:-1] for path in changes if len(path) > 1}:
        siblings = list(dict.fromkeys(h[: len(parent) + 1] for h in headers if h[: len(parent)] == parent != h))
        ends = frozenset((*siblings[:1], *siblings[-1:]))
        related |= {header for header in headers if header[: len(parent) + 1] in ends}
    return frozenset(related)


def _runs(found: Iterable[Statement], related: frozenset[Path]) -> Iterator[tuple[list[Statement], bool]]:
    """(statements, whether they stand aside). Comments and blank lines above what does not, do not either."""
    run: list[Statement] = []
    away = False
    for statement in found:
        if statement.kind in ("table", "array") and (statement.path not in related) != away:
            yield from _parted(run, away)
            run, away = [], not away
        run.append(statement)
    yield from _parted(run, away)


def _parted(run: list[Statement], away: bool) -> Iterator[tuple[list[Statement], bool]]:
    end = len(run)
    while away and run[end - 1].kind in ("comment", "blank"):
        end -= 1
    yield run[:end], away
    if run[end:]:
        yield run[end:], False


def _stand_in(run: list[Statement], number: int, have: Mapping[str, Any]) -> str:
    """An empty table below the one that all of the run stand in, so that this one is not split."""
    above = {
        statement.path[:1] for statement in run if statement.kind in ("table", "array") and len(statement.path) > 1
    }
    alone = any(statement.kind in ("table", "array") and len(statement.path) == 1 for statement in run)
    key = next(iter(above))[0] if len(above) == 1 and not alone else ""
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", key) and isinstance(have.get(key), dict)
    return f"[{key}.gpunode-aside-{number}]\n" if bare else f"[gpunode-aside-{number}]\n"
