"""Pods of tests that have ended and are still there: who made them was killed. And how a pod is deleted."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from gpunode.cluster.server import NAMESPACE, Server
from gpunode.cluster.values import mapping, sequence, text
from gpunode.errors import TransportError
from gpunode.kubernetes.pods import MANAGED_BY, TEST_PREFIX

LOOK_S = 15.0
MOST_SWEPT = 20
LEFT_AFTER = timedelta(minutes=10)  # a test has two minutes, and its pod another one to go; shell/active/pod.sh's too


def sweep(server: Server, node: str) -> tuple[str, ...]:
    """The names of pods of tests on this node that have ended a while ago, deleted now: who made them was killed."""
    options = {"label_selector": "=".join(MANAGED_BY), "field_selector": f"spec.nodeName={node}", "limit": MOST_SWEPT}
    try:
        found = server.object(
            "list pods of earlier tests",
            lambda api: api.list_namespaced_pod(NAMESPACE, _preload_content=False, **options),
            LOOK_S,
        )
        names = [name for one in sequence(found.get("items"), MOST_SWEPT) if (name := _left_name(one))]
        for name in names:
            delete_pod(server, name)
    except TransportError:  # not allowed, or not well: that is no part of this test
        return ()
    return tuple(names)


def _left_name(pod: Any) -> str:
    """Its name; "" for a pod that is not of a test, or may still be read by who made it."""
    meta, phase = mapping(mapping(pod).get("metadata")), mapping(mapping(pod).get("status")).get("phase")
    name, made = text(meta.get("name")), text(meta.get("creationTimestamp"))
    if not name.startswith(TEST_PREFIX) or phase not in ("Succeeded", "Failed"):
        return ""
    try:
        age = datetime.now(timezone.utc) - datetime.strptime(made, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return ""
    return name if age > LEFT_AFTER else ""


def delete_pod(server: Server, name: str) -> None:
    server.text(
        f"delete pod {name}",
        lambda api: api.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=1, _preload_content=False),
    )
