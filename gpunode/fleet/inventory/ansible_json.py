"""What `ansible-inventory --list` prints, and inventory programs do: groups with lists, and every host's variables."""

from __future__ import annotations

from typing import Any

from gpunode.errors import UsageError
from gpunode.fleet.inventory.ansible_vars import keep
from gpunode.fleet.inventory.tree import Said, Tree
from gpunode.foreign import NotRead, read_json


def read_list_json(text: str, tree: Tree) -> None:
    """Fill `tree`; what is wrong goes to its faults. Raises UsageError for what is no JSON."""
    tree.dialect = "ansible"
    try:
        data: dict[str, Any] = read_json(text, unique=True)
    except NotRead as fault:
        raise UsageError(f"{tree.source} cannot be read as JSON", evidence=str(fault)) from fault
    for name, group in data.items():
        if name != "_meta":
            _group(name, group, tree)
    for host, variables in _mapping(_mapping(data.get("_meta")).get("hostvars")).items():
        if host in tree.hosts:  # others are of hosts that no group has
            settings = _kept(_mapping(variables), tree, host)
            tree.add_hosts(host, None, settings, 0)


def _group(name: str, data: object, tree: Tree) -> None:
    group = tree.group(name, 0)
    if isinstance(data, list):  # programs may print a group's hosts alone
        data = {"hosts": data}
    if not isinstance(data, dict):
        tree.fault(0, f"group {name[:80]} is neither a list nor a mapping")
        return
    group.settings |= _kept(_mapping(data.get("vars")), tree, f"group {name[:80]}")
    for child in _words(data.get("children"), tree, f"group {name[:80]}: children"):
        group.children[child] = None
        tree.group(child, 0)
    for word in _words(data.get("hosts"), tree, f"group {name[:80]}: hosts"):
        tree.add_hosts(word, group, {}, 0)


def _words(value: object, tree: Tree, what: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    tree.fault(0, f"{what} is not a list of names")
    return []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _kept(variables: dict[str, Any], tree: Tree, whose: str) -> dict[str, Said]:
    found: dict[str, Said] = {}
    for name, value in variables.items():
        vault = isinstance(value, dict) and "__ansible_vault" in value
        plain = value.get("__ansible_unsafe") if isinstance(value, dict) else value
        if vault or value is None or isinstance(plain, str | int | float):
            keep(tree, name, Said(str(plain), 0, unset=value is None), vault=vault, into=found, whose=whose)
    return found
