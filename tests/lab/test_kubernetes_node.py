"""From `gpunode setup` to a pod with its GPUs: a real API server and kubelet 1.20.2, by containerd and dockerd.

NVIDIA's device plugin is a stand-in that speaks its protocol (device_plugin.py); its driver and runtime are the lab's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from . import kubelet
from .cluster import Cluster
from .lab import Lab
from .product_runs import expect

PLUGIN = "nvidia-device-plugin-daemonset-lab01"
SHOWS = 'echo "$NVIDIA_VISIBLE_DEVICES $(ls /dev/nvidia0)"; exec sleep 6000'
# What the node's object, the kubelet's directory and the plugin's pod have to be read for.
READ = (
    *("node-ready", "capacity", "labels", "taints", "eviction-pressure", "kubelet-up", "kubelet-version", "detect"),
    *("dp-container", "dp-dir", "dp-socket", "dp-registered", "runtimeclass", "podresources", "allocated-ghosts"),
)


@pytest.mark.parametrize("engine", ["containerd", "docker"])
def test_from_setup_to_a_pod_with_its_gpus(lab: Lab, tmp_path: Path, engine: str) -> None:
    cluster = Cluster(lab, tmp_path, engine, gpu="hgx-h100")
    host, plane = cluster.host, cluster.plane
    handler = "nvidia" if engine == "containerd" else None  # dockershim knows the default runtime alone
    flags = expect(cluster.me.gpunode(host, "k8s", "labels", "--form", "node-labels", "--quiet"), 0).stdout.strip()
    cluster.join(flags)
    plane.create(kubelet.RUNTIME_CLASS)
    labels = dict(pair.split("=") for pair in flags.removeprefix("--node-labels=").split(","))
    assert labels["nvidia.com/gpu.family"] == "hopper"
    assert labels.items() <= cluster.node()["metadata"]["labels"].items()
    assert plugin_outcome(cluster) == "finding"

    plane.create(kubelet.plugin(host.name, handler))
    uuids = {gpu["uuid"] for gpu in cluster.facts()["driver"]["smi"]["gpus"]}
    cluster.wait(lambda: cluster.gpus() == (len(uuids), len(uuids)), "GPUs in capacity and allocatable")
    first = given(cluster, "first", 2, handler)
    assert faults(cluster.checked("--only", "k8s.*")) == {}

    host.nsrun("systemctl restart kubelet", check=True)
    cluster.wait(lambda: sum("Registered" in line for line in cluster.said(PLUGIN)) == 2, "plugin that registers anew")
    cluster.wait(lambda: cluster.gpus() == (len(uuids), len(uuids)), "GPUs after the restart")
    second = given(cluster, "second", 6, handler)
    assert (len(first), len(second)) == (2, 6)
    assert first | second == uuids
    assert faults(cluster.checked("--only", "k8s.*")) == {}

    plane.kubectl("delete", "pod", "-n", "kube-system", PLUGIN, "--grace-period=0", "--force")
    cluster.wait(lambda: host.nsrun("pgrep -x nvidia-device-p").returncode == 1, "end of the plugin")
    # Its socket stays; its logs go with the kubelet's next sweep, within a minute.
    host.nsrun(f"rm -rf /var/log/pods/kube-system_{PLUGIN}_*", check=True)
    assert host.nsrun("ls /var/lib/kubelet/device-plugins/nvidia*.sock").returncode == 0
    cluster.wait(lambda: plugin_outcome(cluster) == "finding", "finding of a plugin that ended")


def plugin_outcome(cluster: Cluster) -> str:
    outcome: str = cluster.checked("--only", "k8s.*")["k8s.dp-container"]["outcome"]
    return outcome


def given(cluster: Cluster, name: str, gpus: int, handler: str | None) -> set[str]:
    """The GPUs of a new pod: what Allocate gave is what its container has, and the nvidia handler made its devices."""
    cluster.plane.create(kubelet.pod(name, cluster.host.name, SHOWS, gpus=gpus, handler=handler))
    ids, device = cluster.wait(lambda: cluster.said(name), f"words of pod {name}")[0].split()
    assert device == "/dev/nvidia0"
    assert f"Allocate {ids}" in cluster.said(PLUGIN)
    return set(ids.split(","))


def faults(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Checks with a finding, and those of READ that did not pass."""
    read = {f"k8s.{name}" for name in READ}
    return {
        name: one
        for name, one in found.items()
        if name.startswith("k8s.") and (one["outcome"] == "finding" or (name in read and one["outcome"] != "pass"))
    }
