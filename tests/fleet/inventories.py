"""An inventory as text -> what gpunode makes of it, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpunode.errors import UsageError
from gpunode.fleet.inventory.choice import Shard, chosen
from gpunode.fleet.inventory.members import Member, members
from gpunode.fleet.inventory.reading import read_inventory
from gpunode.fleet.inventory.tree import Tree


def read(directory: Path, text: str, name: str = "hosts") -> Tree:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return read_inventory(path)


def hosts_of(tree: Tree, limit: Sequence[str] = (), exclude: Sequence[str] = (), shard: str = "") -> list[Member]:
    return list(members(tree, chosen(tree, limit, exclude, Shard.parse(shard) if shard else None)))


def named(directory: Path, text: str, *limit: str) -> dict[str, Member]:
    """The hosts of a text by their names."""
    return {str(one.target): one for one in hosts_of(read(directory, text), limit)}


def refused(directory: Path, text: str, *limit: str) -> str:
    """What is said of a text that is refused."""
    with pytest.raises(UsageError) as caught:
        hosts_of(read(directory, text), limit)
    return f"{caught.value.problem}; {caught.value.evidence}; {caught.value.remedy.text}"
