"""Every row of every table says itself where it comes from. Read from YAML's nodes, where a merge is still a merge:
the merged values would show a row that was never looked at with the source of its neighbour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpunode import resources
from gpunode.catalog.rows import GRADES, Row
from gpunode.errors import UsageError

OWN = ("source", "checked", "grade")
FILES = sorted(path.name for path in (Path(resources.__file__).parent / "catalog").glob("*.yaml"))


def tables(file: str, text: str | None = None) -> Iterator[tuple[str, yaml.Node]]:
    """(where, node) of each row in a file: the members of its lists; a mapping right below the top is a row itself."""
    root = yaml.compose(resources.text(f"catalog/{file}") if text is None else text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    for key, table in root.value:
        if isinstance(table, yaml.SequenceNode):
            yield from ((f"{file} line {row.start_mark.line + 1}: {key.value}", row) for row in table.value)
        else:
            yield f"{file} line {table.start_mark.line + 1}: {key.value}", table


def lacking(row: yaml.Node) -> list[str]:
    """What the row does not state within its own lines; a name for another row's words is not its own."""
    if not isinstance(row, yaml.MappingNode):
        return ["a mapping"]
    inside = range(row.start_mark.index, row.end_mark.index)
    own = {key.value for key, value in row.value if value.start_mark.index in inside and value.value}
    return [key for key in OWN if key not in own]


def models(row: yaml.Node) -> list[str]:
    """The lines of a group of GPUs that do not read ID | NAME | SOURCE | CHECKED | GRADE."""
    assert isinstance(row, yaml.MappingNode)
    lines = next(value for key, value in row.value if key.value == "models")
    form = re.compile(rf"[0-9a-f]{{4}} \| [^|]+ \| [^|]+ \| \d{{4}}-\d\d-\d\d \| ({'|'.join(GRADES)})")
    return [line for line in lines.value.splitlines() if not form.fullmatch(line)]


@pytest.mark.parametrize("file", [file for file in FILES if file != "gpus.yaml"])
def test_every_row_states_its_own_source_date_and_grade(file: str) -> None:
    wrong = [f"{where} lacks {', '.join(lacks)}" for where, row in tables(file) if (lacks := lacking(row))]
    assert not wrong


def test_every_gpu_states_its_own_source_date_and_grade() -> None:
    assert [line for _, group in tables("gpus.yaml") for line in models(group)] == []


@pytest.mark.parametrize(
    "row",
    [
        "<<: {source: its neighbour's, checked: 2026-11-21, grade: documented}",
        "<<: *first",
        "source: *words, checked: 2026-11-21, grade: documented",
        "source: '', checked: 2026-11-21, grade: documented",
    ],
    ids=["merged in place", "merged from another row", "another row's words by name", "an empty source"],
)
def test_an_inherited_source_is_none_of_its_own(row: str) -> None:
    text = f"rows:\n  - &first {{source: &words a guide, checked: 2026-11-21, grade: documented}}\n  - {{{row}}}\n"
    first, second = (lacking(node) for _, node in tables("x.yaml", text))
    assert (first, second[:1]) == ([], ["source"])


@pytest.mark.parametrize(
    "line",
    [
        "23ff | Invented",
        "23ff | Invented | a guide | documented",
        "23ff | Invented | a guide | 2026-11-21 | sure",
        "23ff | X | a guide | today | documented",
    ],
)
def test_a_gpu_without_its_own_source_does_not_load(line: str) -> None:
    from gpunode.catalog.gpus import GpuModels

    group = Row("gpus.yaml", "groups[hopper]", {"architecture": "hopper", "models": line})
    with pytest.raises(UsageError, match=r"gpus\.yaml: groups\[hopper\]\.models: .* is not ID \| NAME \| SOURCE"):
        GpuModels([group])["23ff"]


def test_a_gpu_that_is_listed_twice_does_not_load() -> None:
    from gpunode.catalog.gpus import GpuModels

    line = "23ff | Invented | a guide | 2026-11-21 | documented"
    groups = [Row("gpus.yaml", f"groups[{name}]", {"architecture": name, "models": line}) for name in ("ada", "hopper")]
    with pytest.raises(UsageError, match=r"gpus\.yaml: groups\[hopper\]\.models\.23ff: it is listed twice"):
        GpuModels(groups)
