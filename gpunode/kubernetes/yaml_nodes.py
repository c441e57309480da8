"""YAML that a person wrote, as values that know their line: for faults that are to be found again."""

from __future__ import annotations

from typing import Any, Literal

from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_yaml
from gpunode.values import dataclass

TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Node:
    line: int
    shape: Literal["scalar", "list", "mapping"]
    tag: str  # "str" | "bool" | "int" | "null" | ...: what YAML takes a scalar for
    text: str = ""  # of a scalar, as it stands
    items: tuple[Node, ...] = ()  # of a list
    pairs: tuple[tuple[str, Node], ...] = ()  # of a mapping; a key may stand twice


def read_nodes(text: str, name: str, most: int) -> Node | None:
    """The document of a file that messages call `name`; None for an empty one. Raises UsageError."""
    if len(text) > most:
        raise UsageError(f"{name} is over {most} characters", remedy="name a file of a page or two")
    try:
        root: Any = read_yaml(text)
        return None if root is None else _node(root)
    except NotRead as fault:
        raise UsageError(f"{name} is not YAML", evidence=str(fault), remedy=f"correct {name}") from None


def _node(node: Any) -> Node:
    line, tag = node.start_mark.line + 1, str(node.tag).removeprefix(TAG)
    if node.id == "sequence":
        return Node(line, "list", tag, items=tuple(_node(one) for one in node.value))
    if node.id == "mapping":
        return Node(line, "mapping", tag, pairs=tuple((_key(key), _node(value)) for key, value in node.value))
    return Node(line, "scalar", tag, str(node.value))


def _key(node: Any) -> str:
    if node.id != "scalar":
        raise NotRead("a key is a list or a mapping", node.start_mark.line + 1, node.start_mark.column + 1)
    return str(node.value)
