"""What the DaemonSets of the plugin have in common."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.kubernetes.api_versions import CRITICAL_CLASSES, NEWEST, daemonset_api
from gpunode.kubernetes.documents import Object
from gpunode.model.versions import Release
from gpunode.values import dataclass

NAMESPACE = "kube-system"
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"  # before 1.11, together with the toleration below
CRITICAL_TAINT = {"key": "CriticalAddonsOnly", "operator": "Exists"}


@dataclass(frozen=True)
class Cluster:
    """What the objects are for."""

    release: Release = NEWEST
    runtime_class: str | None = None  # None: nvidia is the engine's default runtime


def daemonset(name: str, labels: Mapping[str, str], spec: Object, cluster: Cluster) -> Object:
    """One pod on each node, started again when its template changes."""
    critical = cluster.release < CRITICAL_CLASSES
    metadata: Object = {"annotations": {CRITICAL: ""}} if critical else {}
    return {
        "apiVersion": daemonset_api(cluster.release),
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {**metadata, "labels": labels}, "spec": {**_pod(cluster), **spec}},
        },
    }


def _pod(cluster: Cluster) -> Object:
    if cluster.release < CRITICAL_CLASSES:
        return {"tolerations": [CRITICAL_TAINT, GPU_TAINT]}
    runtime = {"runtimeClassName": cluster.runtime_class} if cluster.runtime_class else {}
    return {"tolerations": [GPU_TAINT], "priorityClassName": "system-node-critical", **runtime}
