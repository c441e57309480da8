"""An inventory of any format -> its hosts and groups. All that is wrong in it is one message."""

from __future__ import annotations

from pathlib import Path

from gpunode.fleet.inventory.ansible_beside import has_beside, read_beside
from gpunode.fleet.inventory.ansible_ini import read_ini
from gpunode.fleet.inventory.ansible_json import read_list_json
from gpunode.fleet.inventory.ansible_yaml import is_ansible, read_yaml_groups
from gpunode.fleet.inventory.lists import words_of_list
from gpunode.fleet.inventory.own_yaml import is_own, read_own
from gpunode.fleet.inventory.shape import Shape, shape_of
from gpunode.fleet.inventory.source import STDIN, text_of
from gpunode.fleet.inventory.ssh_words import targets_of
from gpunode.fleet.inventory.tree import Tree, lines_of, of_targets
from gpunode.fleet.inventory.yaml_nodes import document

FLAG = "--inventory"


def read_inventory(path: Path) -> Tree:
    """The hosts and groups of a file, or of standard input. Raises UsageError with every fault."""
    text, source = text_of(path, f"{FLAG} "), f"{FLAG} {path}"
    beside = None if str(path) == STDIN else path.parent
    tree = parse_inventory(text, source, Path.cwd() if beside is None else path.absolute().parent, beside)
    if tree.dialect == "ansible" and beside is not None:
        read_beside(beside, tree)
    tree.check()
    tree.refuse_faults()
    return tree


def parse_inventory(text: str, source: str, directory: Path, beside: Path | None = None) -> Tree:
    """What a text says, unchecked. `beside`: the directory of its file.

    Raises UsageError for what is not read to its end.
    """
    shape = shape_of(text)
    if shape is Shape.LIST and beside is not None and has_beside(beside) and _is_host_a_line(text):
        shape = Shape.ANSIBLE_INI  # without a heading: what stands beside it may say who is reached
    tree = Tree(source)
    if shape is Shape.ANSIBLE_INI:
        read_ini(text, tree)
    elif shape is Shape.ANSIBLE_JSON:
        read_list_json(text, tree)
    elif shape is Shape.YAML:
        _read_yaml(text, tree, directory)
    else:
        faults: list[str] = []
        tree = of_targets(source, targets_of(words_of_list(text, source), faults))
        tree.faults += faults
    return tree


def _is_host_a_line(text: str) -> bool:
    """Ansible has no commas between hosts: a list with them is none of its inventories, wherever it lies."""
    return not any("," in words.partition("#")[0] for _, words in lines_of(text) if not words.startswith(";"))


def _read_yaml(text: str, tree: Tree, directory: Path) -> None:
    root = document(text, tree.source, tree.faults)
    if root.empty:
        return
    if root.pairs is None:
        tree.fault(root.line, "this YAML is no mapping")
    elif "plugin" in root.pairs:
        tree.fault(
            root.pairs["plugin"].line, "it configures a plugin of Ansible's (ansible-inventory --list prints hosts)"
        )
    elif is_own(root):
        read_own(root, tree, directory)
    elif is_ansible(root) or not root.pairs:
        read_yaml_groups(root, tree)
    else:
        known = "hosts and groups at its top (gpunode's own), or groups with hosts, vars and children (Ansible's)"
        tree.fault(1, f"this YAML is no inventory that gpunode knows: those have {known}")
