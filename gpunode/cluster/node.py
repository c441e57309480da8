"""A node's object: read through the API, and its labels changed, none of them but gpunode's own.

Which labels are gpunode's own stands on the node, in an annotation. A label that was set otherwise since is not: it has
another value than the annotation has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from gpunode.cluster.faults import Answered
from gpunode.cluster.server import Server
from gpunode.cluster.values import mapping, sequence
from gpunode.errors import Drift, StepFailed, TransportError, UnsupportedHost
from gpunode.foreign import NotRead, read_json
from gpunode.kubernetes.label_changes import LabelChanges, is_ours
from gpunode.model.kubernetes import NodeFacts
from gpunode.values import dataclass

ANNOTATION = "gpunode/labels"  # {"nvidia.com/gpu.count": "8"}
TRIES = 5  # against whoever changes the node at the same time: its kubelet does, every ten seconds
LONGEST = 200  # characters of a condition or taint
MOST = 4096  # conditions, taints, labels of one node that are looked at


@dataclass(frozen=True)
class NodeObject:
    name: str
    version: str  # resourceVersion: of the object as it was read
    labels: Mapping[str, str]
    ours: Mapping[str, str]  # labels that gpunode set, with their values
    kubelet: str  # "v1.31.4"
    kernel: str  # "6.8.0-51-generic"
    boot: str  # the boot id of its machine, as the kubelet wrote it; "": none
    facts: NodeFacts


def read_node(server: Server, name: str) -> NodeObject:
    """Raises UnsupportedHost where the cluster has no such node, Answered and Unanswered."""
    what = f"get node {name}"
    try:
        found = server.object(what, lambda api: api.read_node(name, _preload_content=False))
    except Answered as error:
        if error.status != 404:
            raise
        raise UnsupportedHost(
            f"the cluster has no node {name}",
            evidence=f"{server.address} says {error.says or 404}",
            remedy="name it with --node, as kubectl get nodes lists it; or another cluster with --context",
        ) from None
    return _node(name, found)


def change_labels(
    server: Server, node: NodeObject, shown: LabelChanges, again: Callable[[NodeObject], LabelChanges]
) -> None:
    """What was `shown` of `node`, and nothing else: `again` says what would be changed of a newer object.

    Raises Drift where that is no longer the same, StepFailed where the server took it and the node does not have it.
    """
    for _ in range(TRIES):
        try:
            changed = _patched(server, node, shown)
        except TransportError as error:
            status = error.status if isinstance(error, Answered) else 500
            if status < 500 and status != 409:
                raise
            node = read_node(server, node.name)
            now = again(node)
            if status == 409 and now.changes == shown.changes:
                shown = now  # which labels are gpunode's own may have changed as well
                continue
            if status == 409:
                raise _drift(node, "its labels are no longer those that were shown") from None
            if now.changes:
                raise
            return  # the answer was lost on the way, and the change was made
        lacks = [one.name for one in shown.changes if changed.labels.get(one.name) != one.after]
        if lacks:
            raise StepFailed(
                f"node {node.name} does not have what the server took: {lacks[0]}",
                evidence="its answer to the change has another value: something in the cluster changes labels back",
                remedy="look for who else labels nodes: GPU feature discovery, an admission webhook",
            )
        return
    raise _drift(node, f"that was so {TRIES} times in a row; the labels themselves are still those that were shown")


def _drift(node: NodeObject, evidence: str) -> Drift:
    return Drift(f"node {node.name} was changed by somebody else meanwhile", evidence=evidence, remedy="run it again")


def _patched(server: Server, node: NodeObject, changes: LabelChanges) -> NodeObject:
    """A strategic merge patch: null takes a label away. The version makes the server refuse it for a newer object."""
    body = {
        "metadata": {
            "resourceVersion": node.version,
            "labels": {one.name: one.after for one in changes.changes},
            "annotations": {ANNOTATION: json.dumps(dict(changes.ours)) if changes.ours else None},
        }
    }
    what = f"patch node {node.name}"
    answer = server.object(what, lambda api: api.patch_node(node.name, body, _preload_content=False))
    return _node(node.name, answer)


def _node(name: str, found: Mapping[str, Any]) -> NodeObject:
    meta, spec, status = (mapping(found.get(key)) for key in ("metadata", "spec", "status"))
    machine = _texts(status.get("nodeInfo"))
    labels = _texts(meta.get("labels"))
    return NodeObject(
        name,
        str(meta.get("resourceVersion") or ""),
        labels,
        _ours(_texts(meta.get("annotations")).get(ANNOTATION, "")),
        machine.get("kubeletVersion", ""),
        machine.get("kernelVersion", ""),
        machine.get("bootID", ""),
        NodeFacts(
            conditions={one["type"]: _condition(one) for one in _entries(status.get("conditions"), "type", "status")},
            capacity=_texts(status.get("capacity")),
            allocatable=_texts(status.get("allocatable")),
            labels=labels,
            taints=tuple(
                f"{one['effect']} {one['key']}"[:LONGEST] for one in _entries(spec.get("taints"), "effect", "key")
            ),
            unschedulable=spec.get("unschedulable") is True,
        ),
    )


def _condition(one: Mapping[str, str]) -> str:
    return f"{one['status']} {one.get('reason', '')}".strip()[:LONGEST]


def _ours(text: str) -> dict[str, str]:
    """Anybody who may change the node may have written it: what gpunode never sets is not its own."""
    try:
        said = read_json(text) if text else {}
    except NotRead:
        return {}
    return {name: value for name, value in _texts(said).items() if is_ours(name)}


def _texts(value: Any) -> dict[str, str]:
    pairs = list(mapping(value).items())[:MOST]
    return {name: text for name, text in pairs if isinstance(text, str)}


def _entries(value: Any, *needed: str) -> list[dict[str, str]]:
    """The objects of a list that have these texts."""
    texts = [_texts(one) for one in sequence(value, MOST)]
    return [one for one in texts if all(key in one for key in needed)]
