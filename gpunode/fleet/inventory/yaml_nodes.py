"""A YAML inventory as values with their lines. A key that stands twice is a fault: hosts would be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_yaml
from gpunode.values import dataclass

if TYPE_CHECKING:
    import yaml


@dataclass(frozen=True)
class Node:
    """A value as its file spells it."""

    line: int
    text: str | None = None  # of a scalar; None: there is no value, or it is no scalar
    items: tuple[Node, ...] | None = None  # of a list
    pairs: dict[str, Node] | None = None  # of a mapping
    vault: bool = False
    raw: object = None  # as the YAML library has it

    @property
    def empty(self) -> bool:
        return self.text is None and self.items is None and self.pairs is None


def document(text: str, source: str, faults: list[str]) -> Node:
    """Raises UsageError for what is no YAML; an alias of a list or mapping is refused there too."""
    try:
        root = read_yaml(text)
    except NotRead as fault:
        raise UsageError(
            f"{source} cannot be read as YAML",
            evidence=f"line {fault.line}, column {fault.column}: {fault.what}",
            remedy="correct it; nothing was touched",
        ) from fault
    return Node(1, pairs={}) if root is None else _node(root, faults)


def _node(node: yaml.Node, faults: list[str]) -> Node:
    import yaml

    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Node(line, pairs=_pairs(node, faults), raw=node)
    if isinstance(node, yaml.SequenceNode):
        return Node(line, items=tuple(_node(one, faults) for one in node.value), raw=node)
    text = str(node.value)
    null = node.tag == "tag:yaml.org,2002:null"
    vault = node.tag.startswith("!vault") or text.lstrip().startswith("$ANSIBLE_VAULT")
    return Node(line, None if null else text, vault=vault, raw=node)


def _pairs(node: yaml.MappingNode, faults: list[str]) -> dict[str, Node]:
    import yaml

    found: dict[str, Node] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            faults.append(f"line {line}: a key that is a list or a mapping")
        elif key.value in found:
            faults.append(
                f"line {line}: {key.value[:80]!r} is there twice; the first is on line {found[key.value].line}"
            )
        else:
            found[key.value] = _node(value, faults)
    return found
