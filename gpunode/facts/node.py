"""The node's object, from the probe's section `node`: what kubectl printed with the kubelet's own kubeconfig."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from gpunode.facts.device_plugins import is_image
from gpunode.facts.wire import Sections
from gpunode.model.kubernetes import NodeFacts
from gpunode.regex import regex

# metadata.name of a Node: a DNS subdomain
_NAME = regex(r"[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?){0,126}", re.ASCII)


def is_node_name(text: str) -> bool:
    return len(text) < 254 and _NAME.fullmatch(text) is not None


def parse_node(sections: Sections) -> NodeFacts | None:
    """None where it was not asked, or did not answer; HostFacts.unread has why.

    capacity=nvidia.com/gpu 8
    allocatable=nvidia.com/gpu 7
    condition=Ready True KubeletReady
    taint=NoSchedule nvidia.com/gpu
    label=nvidia.com/gpu.count 8
    unschedulable=1
    images=read
    image=nvcr.io/nvidia/gpu-operator:v25.3.1
    """
    lines = sections.text("node").splitlines()
    if not lines:
        return None
    return NodeFacts(
        conditions=_named(lines, "condition"),
        capacity=_named(lines, "capacity"),
        allocatable=_named(lines, "allocatable"),
        labels=_named(lines, "label"),
        taints=tuple(_values(lines, "taint")),
        unschedulable="unschedulable=1" in lines,
        images=tuple(name for name in _values(lines, "image") if is_image(name)) if "images=read" in lines else None,
    )


def _values(lines: Sequence[str], key: str) -> Iterator[str]:
    return (line[len(key) + 1 :] for line in lines if line.startswith(f"{key}="))


def _named(lines: Sequence[str], key: str) -> Mapping[str, str]:
    parts = (value.partition(" ") for value in _values(lines, key))
    return MappingProxyType({name: rest for name, _, rest in parts})
