"""What users type and what comes of it: the tables of docs/reference/engines.md, against which real engines are held.

| docker 28 | before `setup` | after `setup` | after a reboot | after `undo` | after `undo --packages` |
|---|---|---|---|---|---|
| `docker run` | runs | has the GPUs | ... |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "engines.md"
MOMENTS = ("before `setup`", "after `setup`", "after a reboot", "after `undo`", "after `undo --packages`")
# How an outcome is written there; anything else is what the engine itself says, in backquotes.
GPUS, RUNS, WORKS = "has the GPUs", "runs", "works"


@dataclass
class Typed:
    """What came of each command, by moment. `engine`: its name and version, as the table's first heading."""

    engine: str
    seen: dict[str, dict[str, str]] = field(default_factory=dict)

    def note(self, moment: str, outcomes: dict[str, str]) -> None:
        assert moment in MOMENTS, moment
        self.seen[moment] = outcomes

    def hold(self) -> None:
        """What was seen is what the page says, cell by cell."""
        page = documented(self.engine)
        different = [
            f"{moment}, {command}: seen {self.seen.get(moment, {}).get(command)}, on the page {said.get(command)}"
            for moment, said in page.items()
            for command in {**said, **self.seen.get(moment, {})}
            if self.seen.get(moment, {}).get(command) != said.get(command)
        ]
        assert not different, "\n".join([self.engine, *different])


def documented(engine: str) -> dict[str, dict[str, str]]:
    """{moment: {command: outcome}} of the engine's table. Raises ValueError where the page has no such table."""
    lines = iter(PAGE.read_text().splitlines())
    for line in lines:
        heading, *moments = cells(line) or [""]
        if heading == engine and tuple(moments) == MOMENTS:
            next(lines)
            rows = [cells(row) for row in iter(lambda: next(lines, ""), "")]
            return {moment: {row[0]: row[1 + at] for row in rows} for at, moment in enumerate(MOMENTS)}
    raise ValueError(f"{PAGE} has no table of {engine}")


def cells(line: str) -> list[str]:
    """Of a row of a table; none of another line."""
    line = line.strip()
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
