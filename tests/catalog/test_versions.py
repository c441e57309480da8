"""Thresholds of versions: each is asked for somewhere, and nobody asks for one that no row has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpunode
from gpunode.catalog.repositories import _dead, why_dead
from gpunode.catalog.rows import Row
from gpunode.catalog.versions import _since, first_with, thresholds
from gpunode.engines.containerd.validate import DURATIONS
from gpunode.errors import UsageError


def asked_for() -> Iterator[tuple[str, str]]:
    """(program, feature) of every call of first_with and threshold in the product; each program that has a row of it,
    where the code names the feature alone."""
    for path in Path(gpunode.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("first_with", "threshold"):
                if len(node.args) != 2:  # catalog/thresholds.py has one of its own
                    continue
                program, feature = (getattr(argument, "value", None) for argument in node.args)
                if isinstance(program, str) and isinstance(feature, str):
                    yield program, feature
                elif isinstance(feature, str):
                    yield from ((of, name) for of, name in thresholds() if name == feature)


def test_every_threshold_is_a_row_and_every_row_is_asked_for() -> None:
    assert {*asked_for(), *(("containerd", key) for key in DURATIONS)} == set(thresholds())


def test_no_version_decides_from_python() -> None:
    """A pair of numbers that a version is held against is a row of versions.yaml not yet written."""
    wrong = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for room in ("engines", "checks", "planner", "facts")
        for path in (Path(gpunode.__file__).parent / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.expr) and holds_a_version_against_numbers(node)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("code", "decides"),
    [
        ("at_least(engine.version, (1, 7))", True),
        ("at_least(engine.version, HAS_CDI)", True),
        ("known < (23, 0)", True),
        ("at_least(engine.version, first_with('docker', 'cdi'))", False),
        ("known < first_with('docker', 'strict-runtimes')", False),
        ("rc in (0, 2)", False),
    ],
)
def test_what_counts_as_a_version_in_python(code: str, decides: bool) -> None:
    assert holds_a_version_against_numbers(ast.parse(code, mode="eval").body) is decides


def holds_a_version_against_numbers(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        asks = ast.unparse(node.func) == "at_least"
        return asks and not ast.unparse(node.args[1]).startswith("first_with(")
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return any(re.fullmatch(r"\(\d+,( \d+)*\)", ast.unparse(side)) for side in node.comparators)
    return False


@pytest.mark.parametrize(
    ("program", "feature", "version"),
    [
        ("docker", "cdi-by-default", (28, 2)),
        ("driver", "coherent-memory-mode", (580, 0)),
        ("containerd", "cdi-0.7", (1, 7, 16)),
    ],
)
def test_first_with(program: str, feature: str, version: tuple[int, ...]) -> None:
    assert first_with(program, feature) == version


def test_a_threshold_that_is_no_version_is_a_fault_of_its_row() -> None:
    with pytest.raises(UsageError, match=r"versions\.yaml: cdi\.since: 'soon' is not a version such as 28\.2"):
        _since(Row("versions.yaml", "cdi", {"since": "soon"}))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("nvidia-docker/ubuntu18.04/amd64 /", "nvidia-docker's repository has ended"),
        ("libnvidia-container/stable/ubuntu18.04/amd64 /", "the toolkit's repositories by release have ended"),
        ("libnvidia-container/stable/deb/amd64 /", None),
    ],
    ids=["nvidia-docker", "the toolkit by release", "today's is alive"],
)
def test_why_dead(entry: str, why: str | None) -> None:
    assert why_dead(f"deb https://nvidia.github.io/{entry}") == why


def test_a_pattern_that_is_none_is_a_fault_of_its_row() -> None:
    with pytest.raises(UsageError, match=r"x\.pattern: not a regular expression"):
        _dead(Row("repositories.yaml", "x", {"pattern": "("}))
