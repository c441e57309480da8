"""What the ConfigMaps of NVIDIA's device plugin say about sharing, from lines of the probe's section `kubernetes`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpunode.foreign import NotRead, read_yaml, whole_number
from gpunode.model.kubernetes import UNNAMED, PluginConfig, SharedResource, resource_name
from gpunode.regex import regex

_FILE = regex(r"config-of=([\w.-]{1,100}/[\w.-]{1,253})", re.ASCII)
_FLAGS = ("renameByDefault", "failRequestsGreaterThanOne")
MOST_RESOURCES = 64
_TRUE = ("true", "yes", "on", "y")  # as Go's reader of YAML 1.1 has it, in capitals too
ODD = "it is not written in lines of `key: value`"


def parse_configs(lines: Sequence[str]) -> tuple[PluginConfig, ...] | None:
    """None where the probe did not get to see the plugin's volumes. Files that are no such configuration are left out.

    plugin-configs=read
    config-of=available-configs/config.yaml
    sharing=version: v1
    sharing=sharing:
    sharing=  timeSlicing:
    sharing=    resources:
    sharing=    - name: nvidia.com/gpu
    sharing=      replicas: 4
    """
    if "plugin-configs=read" not in lines:
        return None
    return tuple(config for name, text, odd in _files(lines) if (config := _config(name, text, odd)))


def _files(lines: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """(name, text, whether some of it could not be taken) of each file."""
    name, text, odd = "", [""], False
    for line in (*lines, "config-of="):
        if line.startswith("config-of="):
            if name:
                yield name, "\n".join(text), odd
            found = _FILE.fullmatch(line)
            name, text, odd = found[1] if found else "", [], False
        elif line.startswith("sharing="):
            text.append(line[8:])
        elif line == "config-odd=1":
            odd = True


def _config(name: str, text: str, odd: bool) -> PluginConfig | None:
    """None for what is no configuration of the plugin: the Operator mounts a script in the same way."""
    if odd:
        return PluginConfig(name, unread=ODD)
    if not text:
        return None
    try:
        keys = _children(read_yaml(text))
        sharing, flags = _children(keys.get("sharing")), _children(keys.get("flags"))
        return PluginConfig(
            name,
            version=_word(keys.get("version")),
            mig_strategy=_word(flags.get("migStrategy")),
            time_slicing=_resources(sharing.get("timeSlicing")),
            mps=_resources(sharing.get("mps")),
            bare=tuple(way for way, keys in _ways(sharing) if not _listed(keys)),
            odd_flags=tuple(
                f"{way}.{key}" for way, keys in _ways(sharing) for key in _FLAGS if not _is_flag(keys.get(key))
            ),
        )
    except NotRead as fault:
        return PluginConfig(name, unread=fault.what)


def _children(node: Any) -> Mapping[str, Any]:
    """What a mapping (a yaml.Node) has; an empty value has nothing. Raises NotRead."""
    if node is None or _is(node, "null") or (node.id == "scalar" and not node.value):
        return {}
    if node.id != "mapping":
        raise NotRead("a mapping is wanted where there is something else")
    return {key.value: value for key, value in node.value if key.id == "scalar"}


def _resources(node: Any) -> tuple[SharedResource, ...]:
    keys = _children(node)
    renamed = (_word(keys.get("renameByDefault")) or "").lower() in _TRUE
    return tuple(_resource(_children(one), renamed) for one in _listed(keys))


def _listed(keys: Mapping[str, Any]) -> Sequence[Any]:
    listed = keys.get("resources")
    if listed is None or _is(listed, "null"):
        return ()
    if listed.id != "sequence":
        raise NotRead("resources is no list")
    few: Sequence[Any] = listed.value[:MOST_RESOURCES]
    return few


def _resource(keys: Mapping[str, Any], renamed: bool) -> SharedResource:
    """The plugin ignores its `rename`."""
    replicas = keys.get("replicas")
    number = whole_number(_word(replicas)) if _is(replicas, "int") else None
    return SharedResource(_name(keys) or UNNAMED, number, renamed)


def _name(keys: Mapping[str, Any]) -> str | None:
    return resource_name(keys["name"].value) if _is(keys.get("name"), "str") else None


def _ways(sharing: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the plugin reads as a way of sharing. An empty `timeSlicing:` is one too; `mps:` stays nil, as a pointer."""
    for way in ("timeSlicing", "mps"):
        if way in sharing and not (way == "mps" and _is(sharing[way], "null")):
            yield way, _children(sharing[way])


def _is_flag(node: Any) -> bool:
    """True or false to the plugin, or not there. A plain y or n is one to Go's reader, and a word to Python's."""
    if node is None or _is(node, "bool") or _is(node, "null"):
        return True
    return _is(node, "str") and node.value in ("y", "Y", "n", "N") and node.style is None


def _is(node: Any, kind: str) -> bool:
    """Whether YAML takes a scalar for "str", "int", "bool" or "null"."""
    return node is not None and node.id == "scalar" and node.tag == f"tag:yaml.org,2002:{kind}"


def _word(node: Any) -> str | None:
    """A short one that can be shown."""
    text = node.value if node is not None and node.id == "scalar" else ""
    return text if re.fullmatch(r"[ -~]{1,100}", text) else None
