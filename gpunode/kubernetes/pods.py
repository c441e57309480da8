"""Pods that add two vectors on a GPU and end: by the device plugin, by what an engine shows, on old clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.label_values import product_value
from gpunode.kubernetes.labels import ALPHA_NAME
from gpunode.kubernetes.pod_rules import ALPHA_GPU
from gpunode.model.kubernetes import GPU
from gpunode.model.versions import Release
from gpunode.values import dataclass

NAME = "gpunode-vector-add"
TEST_PREFIX = "gpunode-verify-"  # of a bound pod's name
MANAGED_BY = ("app.kubernetes.io/managed-by", "gpunode")
PRODUCT = "nvidia.com/gpu.product"
HOSTNAME = "kubernetes.io/hostname"  # the kubelet's label; some clouds have another name for the node
AFFINITY_FIELD: Release = (1, 6)  # before it: an annotation that holds JSON; the same for tolerations
AFFINITY_ANNOTATION = "scheduler.alpha.kubernetes.io/affinity"
LIBRARIES = "/usr/local/nvidia/lib64"  # where images of that time look, by their LD_LIBRARY_PATH
# NVIDIA_VISIBLE_DEVICES without a GPU: that none is there is what is to be seen.
_NO_GPU = 'if ls /dev/nvidia[0-9]*; then exit 1; else echo "no GPU is visible, as was asked for"; fi'


@dataclass(frozen=True)
class Library:
    """A path of the host that an old pod needs below LIBRARIES."""

    path: str  # "/usr/lib/nvidia-375", or one file
    name: str | None = None  # of the file in the container; None: it is the driver's own directory


@dataclass(frozen=True)
class PodRequest:
    image: str
    gpus: int = 1
    resource: str = GPU
    kubernetes: Release | None = None  # None: one that is not old
    runtime_class: str | None = None
    product: str | None = None  # as nvidia-smi or its label names it
    hostname: str | None = None  # the node's label HOSTNAME; None: any node
    visible_devices: str | None = None  # then nobody schedules or counts its GPUs
    libraries: Sequence[Library] | None = None  # of a cluster that knows alpha.kubernetes.io/nvidia-gpu


def vector_add_pod(want: PodRequest) -> Object:
    spec = {
        "restartPolicy": "Never",
        **({"runtimeClassName": want.runtime_class} if want.runtime_class else {}),
        **on_node(want),
        **_placed(want),
        "containers": [_container(want)],
        **({"volumes": [_volume(number, one) for number, one in enumerate(want.libraries)]} if want.libraries else {}),
    }
    annotations = {"annotations": _annotations(want)} if _annotations(want) else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, **annotations}, "spec": spec}


def bound_pod(want: PodRequest, name: str, node: str, limit_s: int) -> Object:
    """The same pod under a name of its own, on one node whatever its taints are, and ended when its time is over."""
    pod = vector_add_pod(want)
    spec: Any = pod["spec"]
    bound = {"nodeName": node, "activeDeadlineSeconds": limit_s, "tolerations": [{"operator": "Exists"}]}
    return {**pod, "metadata": {"name": name, "labels": dict([MANAGED_BY])}, "spec": {**spec, **bound}}


def on_node(want: PodRequest) -> Mapping[str, object]:
    return {"nodeSelector": {HOSTNAME: want.hostname}} if want.hostname else {}


def _container(want: PodRequest) -> Mapping[str, object]:
    container: dict[str, object] = {"name": "vector-add", "image": want.image}
    if want.visible_devices is not None:
        # Text, also where it is a number: a server refuses `value: 3`.
        container["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": want.visible_devices}]
        if want.visible_devices in ("none", "void"):
            container["command"] = ["sh", "-c", _NO_GPU]
        return container
    if want.libraries is None:
        return {**container, "resources": {"limits": {want.resource: want.gpus}}}
    container["env"] = [{"name": "LD_LIBRARY_PATH", "value": LIBRARIES}]
    container["resources"] = {"limits": {ALPHA_GPU: want.gpus}}
    container["volumeMounts"] = [_mount(number, one) for number, one in enumerate(want.libraries)]
    return container


def _volume(number: int, one: Library) -> Mapping[str, object]:
    return {"name": f"library-{number}", "hostPath": {"path": one.path}}  # its `type` came with 1.8


def _mount(number: int, one: Library) -> Mapping[str, object]:
    path = f"{LIBRARIES}/{one.name}" if one.name else LIBRARIES
    return {"name": f"library-{number}", "mountPath": path, "readOnly": True}


def _placed(want: PodRequest) -> Mapping[str, object]:
    """Tolerations and affinity as fields, where the release has them."""
    if want.kubernetes is not None and want.kubernetes < AFFINITY_FIELD:
        return {}
    toleration = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    affinity = {"affinity": _affinity(want)} if want.product else {}
    return {"tolerations": [toleration], **affinity}


def _annotations(want: PodRequest) -> Mapping[str, str]:
    if want.product and want.kubernetes is not None and want.kubernetes < AFFINITY_FIELD:
        return {AFFINITY_ANNOTATION: json.dumps(_affinity(want))}
    return {}


def _affinity(want: PodRequest) -> Mapping[str, object]:
    key = ALPHA_NAME if want.libraries is not None else PRODUCT
    values = [product_value(want.product or "")]
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
