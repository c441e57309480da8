"""What several rooms need stands in one place, and is found there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gpunode
from gpunode.advice import listing
from gpunode.model.installed import upstream


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("/etc/nvidia-container-runtime/config.toml", "model/spec.py"),
        ("DRIVER_VERSION = ", "model/versions.py"),
        (r"and \{[^}]*\} (more|\{what\})", "advice.py"),
    ],
    ids=["the path of the toolkit's config", "the form of a driver's version", "and N more"],
)
def test_stands_once(words: str, place: str) -> None:
    root = Path(gpunode.__file__).parent
    found = [path for path in root.rglob("*.py") if re.search(words, path.read_text(encoding="utf-8"))]
    assert [path.relative_to(root).as_posix() for path in found] == [place]


@pytest.mark.parametrize(
    ("count", "limit", "text"),
    [(0, 4, ""), (4, 4, "0, 1, 2, 3"), (5, 4, "0, 1, 2, 3 and 1 more"), (3, 1, "0 and 2 more")],
)
def test_listing(count: int, limit: int, text: str) -> None:
    assert listing(map(str, range(count)), limit) == text


def test_lines_and_sentences_are_parted_before_the_last_as_well() -> None:
    assert listing("abc", 2, between="\n") == "a\nb\nand 1 more"
    assert listing("abcd", 2, between="; ", what="more faults") == "a; b; and 2 more faults"
    assert listing("ab", 2, between="; ") == "a; b"


@pytest.mark.parametrize(
    ("version", "driver"),
    [
        ("3:595.91.07-1.el9", "595.91.07"), ("550.163.01-2", "550.163.01"), ("590.48.01-0ubuntu0.24.04.1", "590.48.01"),
        ("580.82.07_k6.12.0_160000.5-1", "580.82.07"), ("340.108-3", "340.108"), ("595-1ubuntu1", None),
        ("1.20.0-1", None), ("6.8.0-590.48", None), ("595.91.07.2-1", None),
    ],
)  # fmt: skip
def test_the_driver_in_a_packages_version(version: str, driver: str | None) -> None:
    assert upstream(version) == driver
