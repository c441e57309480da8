"""What the ConfigMaps of NVIDIA's device plugin say about sharing, from lines of the probe's section `kubernetes`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gpunode.foreign import NotRead, read_yaml_words, whole_number
from gpunode.model.kubernetes import NVIDIA_RESOURCES, UNNAMED, PluginConfig, SharedResource
from gpunode.regex import regex

_FILE = regex(r"config-of=([\w.-]{1,100}/[\w.-]{1,253})", re.ASCII)
_RESOURCE = regex(r"[\w./*-]{1,100}", re.ASCII)
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
        keys = _children(read_yaml_words(text))
        sharing, flags = _children(keys.get("sharing", "")), _children(keys.get("flags", ""))
        return PluginConfig(
            name,
            version=_word(keys.get("version")),
            mig_strategy=_word(flags.get("migStrategy")),
            time_slicing=_resources(sharing.get("timeSlicing", "")),
            mps=_resources(sharing.get("mps", "")),
            bare=tuple(kind for kind in ("timeSlicing", "mps") if _is_bare(sharing.get(kind))),
        )
    except NotRead as fault:
        return PluginConfig(name, unread=fault.what)


def _children(value: object) -> Mapping[str, object]:
    """What a mapping has; an empty value has nothing. Raises NotRead."""
    if value in ("", "null", "~"):
        return {}
    if not isinstance(value, dict):
        raise NotRead("a mapping is wanted where there is something else")
    return value


def _is_bare(value: object) -> bool:
    return isinstance(value, dict) and value.get("resources", "") in ("", "null", "~", [])


def _resources(value: object) -> tuple[SharedResource, ...]:
    keys = _children(value)
    listed = keys.get("resources", [])
    if not isinstance(listed, list):
        raise NotRead("resources is no list")
    renamed = (_word(keys.get("renameByDefault")) or "").lower() in _TRUE
    return tuple(_resource(_children(one), renamed) for one in listed[:MOST_RESOURCES])


def _resource(keys: Mapping[str, object], renamed: bool) -> SharedResource:
    """Its name is whole, as the plugin makes it (NewResourceName), which ignores `rename`."""
    name = _word(keys.get("name")) or ""
    named = NVIDIA_RESOURCES + name.removeprefix(NVIDIA_RESOURCES) if _RESOURCE.fullmatch(name) else UNNAMED
    return SharedResource(named, whole_number(_word(keys.get("replicas"))), renamed)


def _word(value: object) -> str | None:
    """A short one that can be shown."""
    return value if isinstance(value, str) and re.fullmatch(r"[ -~]{1,100}", value) else None
