"""gpunode's own inventories: hosts, groups, how they are reached, and what is wanted of them.

user: root                        for every host that says nothing else
hosts:
  gpu[01-08].example:
  login01: {address: 192.0.2.7, port: 2222}
groups:
  h100:
    hosts: gpu[01-04].example
    spec: {driver: 580}           or a file: spec: h100.yaml
  lab:
    children: [h100]
    jump: bastion.example
"""

from __future__ import annotations

from pathlib import Path

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.fleet.inventory.settings import SETTINGS, path_of
from gpunode.fleet.inventory.ssh_words import fault_of
from gpunode.fleet.inventory.tree import ALL, Group, Said, Tree
from gpunode.fleet.inventory.words import has_range, split_words
from gpunode.fleet.inventory.yaml_nodes import Node
from gpunode.specfile import layer_in_file, layer_of

TOP = ("hosts", "groups", *SETTINGS, "spec")
OF_GROUP = ("hosts", "children", *SETTINGS, "spec")
OF_HOST = (*SETTINGS, "spec")


def is_own(root: Node) -> bool:
    return any(key in ("hosts", "groups") for key in root.pairs or {})


def read_own(root: Node, tree: Tree, directory: Path) -> None:
    """Fill `tree`; what is wrong goes to its faults. Files that it names are next to it, in `directory`."""
    reader = _Reader(tree, directory)
    reader.group(tree.group(ALL, 1), root, TOP)
    for name, node in reader.pairs(root, "groups", "groups").items():
        if name in (ALL, "hosts", "groups"):
            tree.fault(
                node.line, f"{name} is not a name of a group here: what is for all hosts stands outside of groups"
            )
        reader.group(tree.group(name, node.line), node, OF_GROUP)


class _Reader:
    def __init__(self, tree: Tree, directory: Path) -> None:
        self._tree, self._directory = tree, directory

    def group(self, group: Group, node: Node, keys: tuple[str, ...]) -> None:
        whose = "" if group.name == ALL else f"group {group.name[:80]}: "
        self._refuse_others(node, keys, whose)
        group.settings |= self._settings(node, whose)
        group.settings.pop("address", None)
        if node.pairs and "address" in node.pairs:
            self._tree.fault(node.pairs["address"].line, f"{whose}address is for one host")
        group.spec |= self._spec(node, whose)
        for child in self._words(node, "children", whose):
            group.children[child.text or ""] = None
        for word, value in self._hosts(node, whose):
            self._host(word, value, None if group.name == ALL else group, whose)

    def pairs(self, node: Node, key: str, whose: str) -> dict[str, Node]:
        found = (node.pairs or {}).get(key)
        if found is not None and not found.empty and found.pairs is None:
            self._tree.fault(found.line, f"{whose}: a mapping is wanted here")
        return (found.pairs if found else None) or {}

    def _hosts(self, node: Node, whose: str) -> list[tuple[str, Node]]:
        """A list, text with commas, or a mapping with settings."""
        found = (node.pairs or {}).get("hosts")
        if found is not None and found.pairs is not None:
            return list(found.pairs.items())
        return [(one.text or "", Node(one.line)) for one in self._words(node, "hosts", whose)]

    def _words(self, node: Node, key: str, whose: str) -> list[Node]:
        found = (node.pairs or {}).get(key)
        if found is None or found.empty:
            return []
        each = found.items if found.items is not None else (found,)
        if any(one.text is None for one in each):
            self._tree.fault(found.line, f"{whose}{key} is a list of names")
        return [Node(one.line, word) for one in each if one.text is not None for word in split_words(one.text)]

    def _host(self, word: str, node: Node, group: Group | None, whose: str) -> None:
        tree, named = self._tree, f"{whose}{word[:80]}: "
        if node.pairs is None and not node.empty:
            tree.fault(node.line, f"{named}settings are a mapping")
        self._refuse_others(node, OF_HOST, named)
        settings = self._settings(node, named)
        if "address" in settings and has_range(word):
            tree.fault(node.line, f"{named}one address is not for several hosts")
        spec = self._spec(node, named)
        for name in tree.add_hosts(word, group, settings, node.line):
            self._add_spec(name, spec, node.line)

    def _add_spec(self, name: str, spec: dict[str, str], line: int) -> None:
        before = self._tree.specs.setdefault(name, {}) if spec else {}
        for key, text in spec.items():
            if before.setdefault(key, text) != text:
                self._tree.fault(line, f"{name}: {key} of its spec is {text[:80]!r} here, and something else elsewhere")

    def _settings(self, node: Node, whose: str) -> dict[str, Said]:
        found: dict[str, Said] = {}
        for key, parse in SETTINGS.items():
            value = (node.pairs or {}).get(key)
            if value is None:
                continue
            if value.text is None:
                self._tree.fault(value.line, f"{whose}{key} has no value")
                continue
            try:
                parse(value.text)
            except UsageError as error:
                self._tree.fault(value.line, f"{whose}{key}: {fault_of(error)}")
                continue
            text = self._near(value.text) if key == "identity" else value.text
            found[key] = Said(text, value.line)
        return found

    def _spec(self, node: Node, whose: str) -> dict[str, str]:
        """Keys of a spec, or the name of a file of them."""
        value = (node.pairs or {}).get("spec")
        if value is None or value.empty:
            return {}
        faults: list[str] = []
        try:
            if value.text is not None:
                path = self._near(value.text)
                return layer_in_file(Path(path))
            layer = layer_of(value.raw, faults)
        except UsageError as error:
            self._tree.fault(value.line, f"{whose}spec: {fault_of(error)}")
            return {}
        self._tree.faults += [f"{whose}spec: {fault}" for fault in faults]
        return layer

    def _near(self, text: str) -> str:
        """A relative path is next to the inventory. Raises UsageError for what is no path."""
        return str(self._directory / path_of(text))

    def _refuse_others(self, node: Node, keys: tuple[str, ...], whose: str) -> None:
        if node.pairs is None and not node.empty:
            self._tree.fault(node.line, f"{whose}a mapping is wanted here")
        for key, value in (node.pairs or {}).items():
            if key not in keys:
                said = f"{meant(key, keys)}the keys are {', '.join(keys)}"
                self._tree.fault(value.line, f"{whose}{key[:80]!r} is not a key here ({said})")
