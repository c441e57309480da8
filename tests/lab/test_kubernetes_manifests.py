"""What gpunode prints for a cluster of 1.20: a real API server 1.20.2 has nothing against it. It keeps none of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpunode.kubernetes.documents import documents
from gpunode.kubernetes.monitoring import monitoring
from gpunode.kubernetes.plugin_forms import cluster_of, printed
from gpunode.kubernetes.pods import PodRequest, vector_add_pod
from tests.kubernetes.plugins import MPS, RELEASES, documents_of, plugin
from tests.kubernetes.test_plugin_manifest import PLUGINS

from .control_plane import ControlPlane
from .lab import Lab

SERVER = "1.20"
PODS: tuple[dict[str, Any], ...] = (
    {}, {"gpus": 8}, {"resource": "nvidia.com/mig-1g.10gb"}, {"product": "Tesla P100-PCIE-16GB"},
    {"runtime_class": "nvidia"}, {"visible_devices": "3"}, {"visible_devices": "none"},
)  # fmt: skip


def of_plugins() -> Iterator[Any]:
    for runtime_class in (None, "nvidia"):
        cluster = cluster_of(SERVER, runtime_class)
        for release in RELEASES:
            for options, configs in PLUGINS:
                if MPS not in configs.values() or release.numbers >= (0, 15):
                    yield from documents_of(printed(plugin(release, options, **configs), "manifest", None, cluster))
        yield from documents_of(monitoring("manifest", cluster))


def of_people() -> Iterator[Any]:
    for more in PODS:
        yield from documents_of(
            documents([vector_add_pod(PodRequest("example/vector-add:1", kubernetes=(1, 20), **more))])
        )


def each_once(objects: Iterator[Any]) -> list[dict[str, Any]]:
    """Releases print many alike."""
    return list({json.dumps(one, sort_keys=True): one for one in objects}.values())


def test_a_real_server_takes_all_that_is_printed_for_it(lab: Lab, tmp_path: Path) -> None:
    plane = ControlPlane(lab, tmp_path / "pki")
    plane.kubectl("create", "serviceaccount", "default", check=False)  # without controllers nobody makes it
    found = each_once(of_plugins()) + each_once(of_people())
    assert {one["kind"] for one in found} >= {"DaemonSet", "ConfigMap", "RuntimeClass", "Pod", "Service"}
    plane.create(next(one for one in found if one["kind"] == "RuntimeClass"))  # a pod with it is refused before
    assert asked(plane, [one for one in found if one["kind"] != "RuntimeClass"]) == ""
    wrong = json.loads(json.dumps(next(one for one in found if one["kind"] == "DaemonSet")))
    wrong["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    assert "image: Required value" in asked(plane, [wrong]), "it takes anything"


def asked(plane: ControlPlane, objects: list[dict[str, Any]]) -> str:
    """What the server has against them."""
    whole = {"apiVersion": "v1", "kind": "List", "items": objects}
    done = plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(whole), check=False)
    assert done.stdout.count("(server dry run)") + len(done.stderr.splitlines()) >= len(objects), done.stderr
    return done.stderr
