"""Pairs of file trees in one text each: what is on a host before a rewrite, and after it.

    A sentence about the case.
    was: crun
    === before /etc/containers/containers.conf crlf
    [engine]
    === after /etc/containers/containers.conf crlf
    [engine]
    runtime = "nvidia"

Words behind a path: crlf = its lines end so, bom = a byte order mark comes first, open = no newline ends it.
A file that the rewrite leaves alone stands under `before` only; `=== dump merged_config` is the running daemon's word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    name: str
    said: dict[str, str]  # "was", "want": what stands above the trees as WORD: VALUE; and the text of a tree "dump"
    before: dict[str, str]
    after: dict[str, str]  # the whole tree, with the files that did not change


def pairs(directory: Path) -> list[Pair]:
    found = [read(path) for path in sorted(directory.glob("*.txt"))]
    assert found, f"no pair lies in {directory}"
    return found


def read(path: Path) -> Pair:
    head, *sections = re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    trees: dict[str, dict[str, str]] = {"before": {}, "after": {}, "dump": {}}
    for section in sections:
        title, _, text = section.partition("\n")
        tree, place, *words = title.split()
        trees[tree][place] = _spelled(text, words)
    said = dict(re.findall(r"^(\w+): (.*)$", head, re.MULTILINE)) | trees["dump"]
    return Pair(path.stem, said, trees["before"], {**trees["before"], **trees["after"]})


def _spelled(text: str, words: list[str]) -> str:
    if "open" in words:
        text = text.removesuffix("\n")
    if "crlf" in words:
        text = text.replace("\n", "\r\n")
    return f"\ufeff{text}" if "bom" in words else text
