"""The DaemonSet: valid in every release, whole in its ConfigMaps, rolled out node by node."""

from __future__ import annotations

import base64
import json
import random
from functools import cache
from typing import Any

import pytest
import yaml

from gpunode.export.daemonset import PART_BYTES, READY, SELECTED, Images, daemonset
from gpunode.export.files import Request
from gpunode.kubernetes.readiness import TAINT
from tests.kubernetes.schemas import RELEASES, faults

from .requests import SPEC, STAND_IN, request

BYTES = random.Random(1).randbytes(2 * PART_BYTES + 5)
# By libyaml where PyYAML was built with it: gpunode is a megabyte in there.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BOTH = Images("busybox:1", "kubectl:1")


def objects(asked: Request, images: Images = BOTH, namespace: str = "gpunode") -> list[dict[str, Any]]:
    (file,) = daemonset(asked, images, namespace)
    return list(yaml.load_all(file.data, Loader=LOADER))


@cache
def whole(images: Images) -> list[dict[str, Any]]:
    """With a gpunode of several parts; not to be changed."""
    return objects(request(BYTES), images)


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in found if one["kind"] == kind]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("images", [BOTH, Images("busybox:1")], ids=["with kubectl", "without"])
def test_every_object_is_valid(release: str, images: Images) -> None:
    for one in whole(images):
        assert faults(one, release) == [], one["kind"]


def test_the_config_maps_hold_gpunode_whole_and_in_order() -> None:
    found = whole(BOTH)
    maps = of_kind(found, "ConfigMap")
    parts = {name: text for one in maps for name, text in one.get("binaryData", {}).items()}
    assert b"".join(base64.b64decode(parts[name]) for name in sorted(parts)) == BYTES
    assert all(one["immutable"] for one in maps)
    assert maps[0]["data"]["spec.yaml"] == SPEC
    (workload,) = of_kind(found, "DaemonSet")
    sources = workload["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"]
    assert [one["configMap"]["name"] for one in sources] == [one["metadata"]["name"] for one in maps]


def test_no_config_map_is_larger_than_the_api_takes() -> None:
    for one in of_kind(whole(BOTH), "ConfigMap"):
        data = sum(len(base64.b64decode(text)) for text in one.get("binaryData", {}).values())
        assert data + sum(map(len, one.get("data", {}).values())) <= 1 << 20


def test_nodes_that_get_gpunode_elsewhere_need_no_parts() -> None:
    found = objects(request(BYTES, url="https://files.example/gpunode.pyz"))
    assert len(of_kind(found, "ConfigMap")) == 1


def test_one_node_at_a_time_and_only_those_that_are_labelled() -> None:
    (workload,) = of_kind(whole(BOTH), "DaemonSet")
    spec = workload["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    pod = spec["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", SELECTED[0]: SELECTED[1]}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    setup, untaint = pod["containers"]
    assert setup["readinessProbe"]["exec"]["command"] == ["test", "-e", READY]
    assert TAINT in untaint["command"][2]
    assert "privileged" not in untaint["securityContext"]


@pytest.mark.parametrize(
    "changed", [request(STAND_IN, spec=""), request(STAND_IN + b"\n"), request(STAND_IN, "--hold")]
)
def test_what_changes_is_rolled_out_and_what_does_not_is_not(changed: Request) -> None:
    def template(asked: Request) -> str:
        return json.dumps(of_kind(objects(asked), "DaemonSet")[0]["spec"]["template"])

    assert template(request(STAND_IN)) == template(request(STAND_IN))
    assert template(changed) != template(request(STAND_IN))


def test_without_kubectl_the_pod_has_no_rights() -> None:
    found = objects(request(STAND_IN), Images("busybox:1"))
    assert {one["kind"] for one in found} == {"Namespace", "ConfigMap", "DaemonSet"}
    pod = of_kind(found, "DaemonSet")[0]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod
    assert [one["name"] for one in pod["volumes"]] == ["gpunode", "ready"]
