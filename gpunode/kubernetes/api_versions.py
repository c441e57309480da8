"""Which version of an object's API a release of Kubernetes has, where releases that still run GPUs differ."""

from __future__ import annotations

from gpunode.errors import UsageError
from gpunode.kubernetes.documents import Object
from gpunode.model.versions import Release, written
from gpunode.remedy import Remedy, RepairAction, setup

NEWEST: Release = (1, 999)  # where none is named: what every supported release has
CRITICAL_CLASSES: Release = (1, 11)  # system-node-critical is there without a step of anybody's
PLUGIN_V1BETA1: Release = (1, 10)  # the device plugin API that every later plugin speaks


def daemonset_api(release: Release) -> str:
    """apps/v1 came with 1.9."""
    return "apps/v1" if release >= (1, 9) else "apps/v1beta2"


def runtime_class(name: str, handler: str, release: Release) -> Object:
    """v1alpha1 (1.12), v1beta1 (1.14), v1 (1.20). Raises UsageError for a release that has none."""
    metadata = {"name": name}
    if release < (1, 12):
        raise UsageError(
            f"Kubernetes {written(release)} has no RuntimeClass",
            evidence="it came with 1.12",
            remedy=Remedy(
                RepairAction.CONFIGURE, setup(), " makes nvidia the engine's default runtime; leave --runtime-class out"
            ),
        )
    if release < (1, 14):
        spec = {"runtimeHandler": handler}
        return {"apiVersion": "node.k8s.io/v1alpha1", "kind": "RuntimeClass", "metadata": metadata, "spec": spec}
    version = "v1" if release >= (1, 20) else "v1beta1"
    return {"apiVersion": f"node.k8s.io/{version}", "kind": "RuntimeClass", "metadata": metadata, "handler": handler}
