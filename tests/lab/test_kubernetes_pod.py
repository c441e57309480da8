"""gpunode k8s verify --pod on a real cluster: its pod, whose rights it takes, and that nothing is left of it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from . import guide_images, kubelet
from .cluster import Cluster
from .container_image import write_image
from .control_plane import ADMIN
from .lab import Lab

FAILS, SLEEPS = "lab.example/fails:1", "lab.example/sleeps:1"
MINE = "/root/admin.conf"
# A kubelet of 1.20 takes 2 to 20 s to let go of a pod whose containers had just begun. One that it overlooked then has
# its next turn after a minute.
KUBELET_LETS_GO_S = 180.0
# A host's clock, a quarter of an hour later.
LATER = """#!/bin/sh
case $* in +%s) echo $(($(date.real +%s) + 900)) ;; *) exec date.real "$@" ;; esac
"""


def test_the_last_link_is_a_pod_that_ran(lab: Lab, tmp_path: Path) -> None:
    cluster = Cluster(lab, tmp_path, "containerd", gpu="h100")
    host = cluster.host
    guide_images.load(host)
    for name, words in {FAILS: "echo CUDA error 999; exit 3", SLEEPS: "exec sleep 6000"}.items():
        write_image(host.path("/root/one.tar"), name, command=("/bin/sh", "-c", words))
        host.nsrun("ctr -n k8s.io images import /root/one.tar", check=True)
    cluster.join()
    cluster.plane.create(kubelet.RUNTIME_CLASS)
    assert verified(cluster, "--pod") == (1, "not reached", "socket is missing")
    cluster.plane.create(kubelet.plugin(host.name))
    cluster.wait(lambda: cluster.gpus() == (1, 1), "GPU in capacity and allocatable")
    rights(cluster)
    host.write(MINE, cluster.plane.host.path(ADMIN).read_text(), 0o600)
    for name in ("ca.crt", "admin.crt", "admin.key"):
        host.write(f"/etc/kubernetes/pki/{name}", cluster.plane.file(name), 0o600)
    left_behind(cluster)
    code, state, says = verified(cluster, "--pod", "--host-kubeconfig", MINE)
    assert (code, state, says) == (0, "ok", "Succeeded (0 Completed); its last line: Test PASSED")
    assert pods(cluster) == ["gpunode-verify-left", "somebodys"]  # who made the first may still be reading it
    host.nsrun("mv /usr/bin/date /usr/bin/date.real", check=True)
    host.write("/usr/bin/date", LATER, 0o755)
    code, state, says = verified(cluster, "--pod", "--host-kubeconfig", MINE)
    host.nsrun("mv /usr/bin/date.real /usr/bin/date", check=True)
    swept = "deleted gpunode-verify-left, left by an earlier test"
    assert (code, state, says) == (0, "ok", f"Succeeded (0 Completed); its last line: Test PASSED; {swept}")
    assert pods(cluster) == ["somebodys"]
    cluster.plane.kubectl("delete", "pod", "somebodys")
    code, state, says = verified(cluster, "--pod", "--host-kubeconfig", MINE, "--image", FAILS)
    assert (code, state, says) == (1, "missing", "Failed (3 Error); its last line: CUDA error 999")
    assert pods(cluster) == []
    cut_off(cluster)
    cluster.plane.create(kubelet.pod("busy", host.name, "exec sleep 6000", gpus=1))
    cluster.wait(
        lambda: cluster.plane.get("pod", "busy").get("status", {}).get("phase") == "Running", "pod with the GPU"
    )
    code, state, says = verified(cluster, "--pod", "--host-kubeconfig", MINE)
    assert (code, state) == (1, "unknown"), says
    assert "requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0" in says
    assert pods(cluster) == ["busy"]


def left_behind(cluster: Cluster) -> None:
    """A pod of an earlier test that has ended, as a host that goes down leaves it; and one that is somebody else's."""
    for name in ("gpunode-verify-left", "somebodys"):
        pod = kubelet.pod(name, cluster.host.name, "exit 1")
        pod["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "gpunode"}
        cluster.plane.create(pod)
        cluster.wait(partial(ended, cluster, name), f"end of {name}")


def ended(cluster: Cluster, pod: str) -> bool:
    return bool(cluster.plane.get("pod", pod).get("status", {}).get("phase") == "Failed")


def rights(cluster: Cluster) -> None:
    """A node has no kubeconfig that may create pods; with the kubelet's, the server says so."""
    code, state, says = verified(cluster, "--pod")
    assert (code, state) == (1, "unknown")
    assert "the kubelet's own may not (NodeRestriction: mirror pods alone)" in says
    assert "create, get and delete pods and get pods/log in the namespace default" in says
    code, state, says = verified(cluster, "--pod", "--host-kubeconfig", kubelet.KUBECONFIG)
    assert (code, state) == (1, "unknown")
    assert 'node "gpu01" can only create mirror pods' in says
    assert "it takes the rights to create, get and delete pods" in says
    assert pods(cluster) == []


def cut_off(cluster: Cluster) -> None:
    """Who asked has gone: the host deletes the pod by itself."""
    words = ("k8s", "verify", "--pod", "--host-kubeconfig", MINE, "--image", SLEEPS, "--ssh", cluster.host.name)
    argv, env = (sys.executable, "-m", "gpunode", *words), cluster.me.env(cluster.host)
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        cluster.wait(lambda: pods(cluster), "pod that sleeps")
        run.kill()
    cluster.wait(lambda: not kept(cluster), "deletion of the pod")
    cluster.wait(lambda: not pods(cluster), "end of the deleted pod", KUBELET_LETS_GO_S)
    cluster.wait(lambda: not cluster.host.path("/run/gpunode-test").exists(), "end of the test")


def verified(cluster: Cluster, *words: str) -> tuple[int, str, str]:
    """Exit code, state and words of the last link."""
    done = cluster.me.gpunode(cluster.host, "k8s", "verify", "--json", *words)
    link: dict[str, Any] = json.loads(done.stdout)["hosts"][0]["links"][-1]
    assert link["link"] == "pod"
    return done.returncode, link["state"], link["evidence"]


def pods(cluster: Cluster) -> list[str]:
    """Their names in the namespace default."""
    return [one["metadata"]["name"] for one in cluster.plane.get("pods").get("items", ())]


def kept(cluster: Cluster) -> list[str]:
    """Those that nobody has deleted; a deleted one is there until its kubelet lets go of it."""
    found = (one["metadata"] for one in cluster.plane.get("pods").get("items", ()))
    return [one["name"] for one in found if "deletionTimestamp" not in one]
