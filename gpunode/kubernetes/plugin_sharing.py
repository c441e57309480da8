"""`sharing` of the plugin's config file: which resource is given to how many containers at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.foreign import whole_number
from gpunode.kubernetes.plugin_model import Shared, Sharing, Strategy
from gpunode.kubernetes.yaml_nodes import Node
from gpunode.model.kubernetes import LONGEST_RESOURCE, NVIDIA_RESOURCES, resource_name

MOST = 64
MOST_REPLICAS = 10_000  # a node has far fewer pods
_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_OF_A_RESOURCE = ("name", "replicas", "rename", "devices")
IGNORED = "the plugin ignores it, in every release: leave it out"


def sharing_of(strategy: Strategy, node: Node) -> Sharing:
    """Raises UsageError at its first fault."""
    keys = _mapping(node, _KEYS)
    listed = keys.get("resources")
    if listed is None or listed.shape != "list" or not 0 < len(listed.items) <= MOST:
        raise UsageError(f"resources is a list of what is shared, at most {MOST}, with a name and replicas each")
    resources = tuple(_shared(one) for one in listed.items)
    if len({one.name for one in resources}) < len(resources):
        raise UsageError("a resource stands twice")
    fail = keys.get("failRequestsGreaterThanOne")
    rename = keys.get("renameByDefault")
    return Sharing(
        strategy,
        resources,
        rename=_flag("renameByDefault", rename) if rename else False,
        fail_above_one=_flag("failRequestsGreaterThanOne", fail) if fail else None,
    )


def _shared(node: Node) -> Shared:
    keys = _mapping(node, _OF_A_RESOURCE)
    if "rename" in keys:
        raise UsageError(f"rename: {IGNORED}; renameByDefault adds .shared to the name")
    if "devices" in keys and keys["devices"].text != "all":
        raise UsageError(
            f"devices: {IGNORED}; every GPU of a node is shared, another node group can have another config"
        )
    replicas = keys.get("replicas", Node(0, "scalar", "null"))
    # With a zero before it, it is octal to the plugin's reader.
    number = whole_number(replicas.text) if replicas.tag == "int" and replicas.text[0] != "0" else None
    if number is None or not 2 <= number <= MOST_REPLICAS:
        raise UsageError(f"replicas is a whole number from 2 to {MOST_REPLICAS}")
    return Shared(_name(keys.get("name", replicas)), number)


def _name(node: Node) -> str:
    name = resource_name(node.text) if node.tag == "str" else None
    if name is None:
        raise UsageError(f"name is one such as {NVIDIA_RESOURCES}gpu, of at most {LONGEST_RESOURCE} characters")
    return name


def _mapping(node: Node, known: Iterable[str]) -> Mapping[str, Node]:
    if node.shape != "mapping":
        raise UsageError(f"a mapping is wanted, with {', '.join(known)}")
    keys = dict(node.pairs)
    if len(keys) < len(node.pairs):
        raise UsageError("a key stands twice")
    if odd := next((key for key in keys if key not in known), None):
        raise UsageError(f"{odd[:60]} is no key of the plugin's. {meant(odd[:60], known)}".rstrip())
    return keys


def _flag(key: str, node: Node) -> bool:
    if node.tag != "bool" or node.text not in ("true", "false"):
        raise UsageError(f"{key} is true or false")
    return node.text == "true"
