"""The plugin's config file, strictly: a key that the plugin does not know is a fault here, and is ignored there.

Every fault is reported together, with its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpunode.advice import listing, meant
from gpunode.catalog.plugin_options import PluginOption
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_model import STRATEGIES, Settings, Sharing, Value
from gpunode.kubernetes.plugin_sharing import sharing_of
from gpunode.kubernetes.plugin_values import from_list, from_word
from gpunode.kubernetes.yaml_nodes import Node, read_nodes

LONGEST = 64 * 1024  # characters; a config is a page of text
MOST_FAULTS = 20
_TAGS = {"flag": "bool", "numbers": "int"}  # what YAML takes a value for; a text otherwise
_WANTED = {"flag": "true or false is wanted", "numbers": "a list of whole numbers is wanted"}


def read_settings(text: str, name: str, options: Sequence[PluginOption]) -> Settings:
    """`name` is what messages call the file. Raises UsageError."""
    faults: list[str] = []
    values, sharing = dict[str, Value](), dict[str, Sharing]()
    by_key = {one.config: one for one in options if one.config}
    seen = set[str]()
    for path, node in _entries(_root(text, name), _holders(by_key)):
        try:
            if path in seen:
                raise UsageError("it stands twice")
            seen.add(path)
            if path in SHARING:
                sharing[path] = sharing_of(SHARING[path], node)
            elif path == "version":
                _version(node)
            else:
                option = _option(path, by_key)
                values[option.flag] = _value(option, node)
        except UsageError as fault:
            faults.append(f"line {node.line}: {path[:80]}: {fault.problem}")
    if len(sharing) > 1:
        faults.append("sharing.timeSlicing and sharing.mps exclude each other")
    if faults:
        raise _faulty(name, faults)
    return Settings(values, next(iter(sharing.values()), None))


SHARING = {f"sharing.{one}": one for one in STRATEGIES}


def _faulty(name: str, faults: Sequence[str]) -> UsageError:
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return UsageError(
        f"{name}: {count}",
        evidence=listing(faults, MOST_FAULTS, between="\n"),
        remedy=f"correct {name}; the plugin itself would ignore a key that it does not know",
    )


def _root(text: str, name: str) -> Node:
    root = read_nodes(text, name, LONGEST)
    if root is not None and root.shape != "mapping":
        raise UsageError(f"{name} is no mapping", remedy="its keys are version, flags, sharing and imex")
    return root or Node(1, "mapping", "map")


def _holders(keys: Mapping[str, PluginOption]) -> frozenset[str]:
    """What has keys of its own: flags, flags.plugin, imex, sharing."""
    parts = [key.split(".") for key in keys]
    return frozenset(".".join(part[:end]) for part in parts for end in range(1, len(part))) | {"sharing"}


def _entries(node: Node, holders: frozenset[str], prefix: str = "") -> Iterator[tuple[str, Node]]:
    for key, value in node.pairs:
        path = f"{prefix}{key}"
        if path in holders and (value.shape == "mapping" or value.tag == "null"):
            yield from _entries(value, holders, f"{path}.")
        else:
            yield path, value


def _option(path: str, by_key: Mapping[str, PluginOption]) -> PluginOption:
    if path in by_key:
        return by_key[path]
    if path in _holders(by_key):
        raise UsageError("a mapping is wanted here")
    if path == "resources":
        raise UsageError("the plugin ignores it, in every release: leave it out")
    known = ("version", *by_key, *SHARING)
    raise UsageError(f"no key of the plugin's. {meant(path[:80], known)}".rstrip())


def _version(node: Node) -> None:
    if node.text != "v1":
        raise UsageError("the plugin knows v1 alone")


def _value(option: PluginOption, node: Node) -> Value:
    nodes = node.items if node.shape == "list" else (node,)
    if node.shape == "mapping" or any(one.tag != _TAGS.get(option.kind, "str") for one in nodes):
        raise UsageError(_WANTED.get(option.kind, "a text is wanted"))
    if node.shape == "list" or option.kind == "words":
        return from_list(option, [one.text for one in nodes])
    if option.kind == "numbers":
        raise UsageError(_WANTED["numbers"])
    return from_word(option, node.text)
