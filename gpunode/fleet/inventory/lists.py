"""Lists of hosts: one a line, as people, scontrol and sinfo write them, and as kubectl prints nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpunode.errors import UsageError
from gpunode.fleet.inventory.kubectl import names_in_json, names_in_table
from gpunode.fleet.inventory.shape import Shape, shape_of
from gpunode.fleet.inventory.words import split_words


def words_of_list(text: str, name: str) -> Iterator[str]:
    """The words of a list, each a host or a range of hosts. Raises UsageError for an inventory with groups."""
    shape = shape_of(text)
    if shape not in READERS:
        raise UsageError(
            f"{name} is an inventory with groups or settings, not a list of hosts",
            evidence=f"it looks like {shape.value}",
            remedy="name it with --inventory",
        )
    yield from READERS[shape](text)


def _plain(text: str) -> Iterator[str]:
    """`#` begins a comment, as `;` does at the beginning of a line; commas part hosts as in --ssh."""
    for line in text.splitlines():
        words = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        if words and not words.startswith(";"):
            yield from split_words(words)


def _node_names(text: str) -> Iterator[str]:
    """`kubectl get nodes -o name`: node/gpu07."""
    for line in text.splitlines():
        if word := line.strip():
            yield word.partition("/")[2]


READERS = {
    Shape.LIST: _plain,
    Shape.NODE_NAMES: _node_names,
    Shape.NODE_TABLE: names_in_table,
    Shape.NODE_JSON: names_in_json,
}
