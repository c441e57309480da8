"""Ansible's YAML inventories: groups with hosts, vars and children (`ansible-inventory --list --yaml`)."""

from __future__ import annotations

from gpunode.fleet.inventory.ansible_vars import keep
from gpunode.fleet.inventory.tree import Group, Said, Tree
from gpunode.fleet.inventory.yaml_nodes import Node

SECTIONS = ("hosts", "vars", "children")


def is_ansible(root: Node) -> bool:
    """Whether every key is a group of Ansible's."""
    groups = (root.pairs or {}).values()
    return bool(groups) and all(
        one.empty or (one.pairs is not None and set(one.pairs) <= set(SECTIONS)) for one in groups
    )


def read_yaml_groups(root: Node, tree: Tree) -> None:
    """Fill `tree`; what is wrong goes to its faults."""
    tree.dialect = "ansible"
    for name, node in (root.pairs or {}).items():
        _group(name, node, tree)


def _group(name: str, node: Node, tree: Tree) -> None:
    group = tree.group(name, node.line)
    if node.pairs is None:
        if not node.empty:
            tree.fault(node.line, f"group {name[:80]} is a mapping of hosts, vars and children")
        return
    for key in node.pairs:
        if key not in SECTIONS:
            tree.fault(node.pairs[key].line, f"group {name[:80]}: {key[:80]!r} is none of hosts, vars and children")
    for variable, value in _pairs(node, "vars", name, tree).items():
        keep_node(tree, variable, value, group.settings, f"group {name}")
    for word, value in _pairs(node, "hosts", name, tree).items():
        _host(word, value, group, tree)
    for child, value in _pairs(node, "children", name, tree).items():
        group.children[child] = None
        _group(child, value, tree)


def _pairs(node: Node, section: str, name: str, tree: Tree) -> dict[str, Node]:
    """A section's mapping; a text alone stands for a key without a value, as it does in Ansible."""
    found = (node.pairs or {}).get(section)
    if found is None or found.empty:
        return {}
    if found.text is not None:
        return {found.text: Node(found.line)}
    if found.pairs is None:
        tree.fault(found.line, f"group {name[:80]}: {section} is a mapping in Ansible's inventories, not a list")
    return found.pairs or {}


def _host(word: str, value: Node, group: Group, tree: Tree) -> None:
    settings: dict[str, Said] = {}
    if value.pairs is None and not value.empty:
        tree.fault(value.line, f"{word[:80]}: variables are a mapping")
    for variable, one in (value.pairs or {}).items():
        keep_node(tree, variable, one, settings, word[:80])
    tree.add_hosts(word, group, settings, value.line)


def keep_node(tree: Tree, name: str, value: Node, into: dict[str, Said], whose: str) -> None:
    """A variable's value: those that count are texts and numbers, or null."""
    if value.text is not None or value.empty or value.vault:
        keep(tree, name, said_by(value), vault=value.vault, into=into, whose=whose)
    elif holds_vault(value):
        keep(tree, name, Said("", value.line), vault=True, into=into, whose=whose)


def said_by(value: Node) -> Said:
    return Said(value.text or "", value.line, unset=value.empty)


def holds_vault(value: Node) -> bool:
    """Whether something in it is encrypted."""
    inner = (*(value.items or ()), *(value.pairs or {}).values())
    return value.vault or any(holds_vault(one) for one in inner)
