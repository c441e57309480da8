"""A pod whose GPUs come by dynamic resource allocation: DeviceClass, ResourceClaimTemplate, Pod."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.pods import NAME, PodRequest, on_node
from gpunode.model.kubernetes import GPU, GPU_DRA_DRIVER
from gpunode.model.versions import Release

# Its own class: gpu.nvidia.com belongs to the chart of NVIDIA's driver, which writes more into it.
CLASS = "gpunode-test-gpu"
V1: Release = (1, 34)
V1BETA2: Release = (1, 33)


def dra_objects(want: PodRequest) -> Sequence[Object]:
    """A product is written as nvidia-smi names it ("NVIDIA H100 80GB HBM3"), which is what the driver publishes."""
    version = f"resource.k8s.io/{_version(want.kubernetes)}"
    claims = {
        "apiVersion": version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": NAME},
        "spec": {"spec": {"devices": {"requests": [_request(want.gpus, want.kubernetes)]}}},
    }
    return _device_class(version, want.product), claims, _pod(want)


def _version(release: Release | None) -> str:
    if release is None or release >= V1:
        return "v1"
    return "v1beta2" if release >= V1BETA2 else "v1beta1"


def _device_class(version: str, product: str | None) -> Object:
    attributes = f'device.attributes["{GPU_DRA_DRIVER}"]'
    terms = [f'device.driver == "{GPU_DRA_DRIVER}"', f'{attributes}.type == "gpu"']
    if product is not None:
        terms.append(f"{attributes}.productName == {json.dumps(product)}")
    selectors = [{"cel": {"expression": " && ".join(terms)}}]
    return {"apiVersion": version, "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": {"selectors": selectors}}


def _request(gpus: int, release: Release | None) -> Mapping[str, object]:
    """v1beta2 moved what is asked for below `exactly`."""
    wanted = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": gpus}
    return {"name": "gpu", **({"exactly": wanted} if _version(release) != "v1beta1" else wanted)}


def _pod(want: PodRequest) -> Object:
    container = {"name": "vector-add", "image": want.image, "resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        "restartPolicy": "Never",
        **on_node(want),
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": NAME}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME}, "spec": spec}
