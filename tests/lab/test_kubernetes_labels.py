"""What the node's own identity may not set is what gpunode says: a real kubelet and API server 1.20.2 are asked."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.catalog.test_node_labels import NAMES

from . import kubelet
from .cluster import Cluster
from .host import Host
from .lab import Lab
from .product_runs import expect

KUBECTL = f"kubectl --kubeconfig {kubelet.KUBECONFIG}"
ALPHA = "alpha.kubernetes.io/nvidia-gpu-name"


def test_nodes_kubelets_and_gpunode_agree_on_every_name(lab: Lab, tmp_path: Path) -> None:
    cluster = Cluster(lab, tmp_path, "containerd", gpu="h100")
    cluster.join()
    host = cluster.host
    assert {name: starts_with(host, name) for name in NAMES} == NAMES
    assert {name: may_register_with(host, name) for name in NAMES} == NAMES
    assert {name: may_change(host, name) for name in NAMES} == NAMES
    what_is_printed_is_what_happens(cluster)


def starts_with(host: Host, name: str) -> bool:
    """A kubelet looks at its labels before it looks for its configuration."""
    said = host.nsrun(f"/usr/bin/kubelet --config /nowhere --node-labels {name}=x 2>&1").stdout
    refused = "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels" in said
    assert refused or "failed to load Kubelet config file /nowhere" in said, said
    return not refused


def may_register_with(host: Host, name: str) -> bool:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": host.name, "labels": {name: "x"}}}
    said = host.nsrun(f"{KUBECTL} create --dry-run=server -f -", input=json.dumps(node)).stderr
    refused = f"is not allowed to set the following labels: {name}" in said
    assert refused or "already exists" in said, said
    return not refused


def may_change(host: Host, name: str) -> bool:
    done = host.nsrun(f"{KUBECTL} label --dry-run=server --overwrite node {host.name} {name}=x")
    assert done.returncode == 0 or f"is not allowed to modify labels: {name}" in done.stderr, done.stderr
    return done.returncode == 0


def what_is_printed_is_what_happens(cluster: Cluster) -> None:
    """With the kubelet's own kubeconfig, and with the administrator's."""
    host, plane = cluster.host, cluster.plane
    for words, by_node in (((), True), (("--kubernetes", "1.15"), False)):
        command = expect(cluster.me.gpunode(host, "k8s", "labels", "--form", "kubectl", *words), 0)
        patch = expect(cluster.me.gpunode(host, "k8s", "labels", "--form", "patch", *words), 0)
        for printed in (command, patch):
            assert ("on the node itself, the kubelet's own" in printed.stderr) is by_node
            assert (f"NodeRestriction refuses {ALPHA}" in " ".join(printed.stderr.split())) is not by_node
        typed = command.stdout.strip().removeprefix("kubectl ")
        patched = f"patch node {host.name} --type merge --patch {shlex.quote(patch.stdout)}"
        for line in (typed, patched):
            done = host.nsrun(f"{KUBECTL} {line}")
            assert (done.returncode == 0) is by_node, done.stderr
            assert by_node or f"is not allowed to modify labels: {ALPHA}" in done.stderr
    plane.kubectl(*shlex.split(typed))
    assert cluster.node()["metadata"]["labels"][ALPHA] == "NVIDIA-H100-80GB-HBM3"
    flag = expect(cluster.me.gpunode(host, "k8s", "labels", "--form", "node-labels", "--kubernetes", "1.15"), 0)
    assert f"kubelet 1.20 does not start with {ALPHA} in --node-labels" in " ".join(flag.stderr.split())
