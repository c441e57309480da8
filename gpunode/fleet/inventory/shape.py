"""Which kind of inventory a text is, by what stands in it: a pipe has no name, and names end as people like."""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum

from gpunode.foreign import NotRead, read_json
from gpunode.regex import regex


class Shape(Enum):
    LIST = "a list of hosts"
    NODE_NAMES = "the output of kubectl get nodes -o name"
    NODE_TABLE = "the output of kubectl get nodes"
    NODE_JSON = "the output of kubectl get nodes -o json"
    ANSIBLE_INI = "an inventory of Ansible (INI)"
    ANSIBLE_JSON = "the output of ansible-inventory --list"
    YAML = "YAML"


_TABLE = regex(r"NAME[ \t]+STATUS[ \t]+ROLES[ \t]+AGE[ \t]+VERSION\b")
# [2001:db8::7] and [01-04] begin lines of lists; a group of Ansible has a name, and a colon before one of two words.
_SECTION = regex(r"\[(?![0-9,-]+\])[^:\]\s\[]+(?::\w+)?\]\s*(?:[#;].*)?")
_SETTING = regex(r"\S+\s+[A-Za-z_]\w*\s*=")
_MAPPING = regex(r"(?:-\s+\S.*|---.*|%YAML.*|(?:\"[^\"]*\"|'[^']*'|[^\s#;=\[{]\S*)\s*:(?:\s.*)?)")


def shape_of(text: str) -> Shape:
    """The shape that the first line that says something has; LIST where none does."""
    if text.lstrip()[:1] == "{":
        return _of_json(text)
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and line[0] not in "#;"]
    if not said:
        return Shape.LIST
    if _TABLE.match(said[0]):
        return Shape.NODE_TABLE
    if all(re.fullmatch(r"node/\S+", line) for line in said):
        return Shape.NODE_NAMES
    if _MAPPING.fullmatch(said[0]):
        return Shape.YAML
    if any(_SECTION.fullmatch(line) or _SETTING.match(line) for line in said):
        return Shape.ANSIBLE_INI
    return Shape.LIST


def _of_json(text: str) -> Shape:
    """What is no JSON is left to YAML, which says where the fault is: {driver: 580} is YAML."""
    with suppress(NotRead):
        data = read_json(text)
        if isinstance(data, dict) and data.get("kind") in ("List", "NodeList", "Node"):
            return Shape.NODE_JSON
        groups = [value for key, value in data.items() if key != "_meta"] if isinstance(data, dict) else []
        if "_meta" in data or any(_is_listed(value) for value in groups):
            return Shape.ANSIBLE_JSON
    return Shape.YAML


def _is_listed(group: object) -> bool:
    """Whether it is a group of Ansible's JSON, which has lists where YAML has mappings."""
    return isinstance(group, dict) and any(isinstance(group.get(key), list) for key in ("hosts", "children"))
