"""The official client on a real cluster: a kubeconfig here, no kubectl on the node, an API server 1.20 that answers."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site_checks.places import trusted_directory

from . import guide_images, kubelet
from .cluster import Cluster
from .container_image import write_image
from .control_plane import PORT
from .host import Result
from .lab import Lab
from .product_runs import expect

FAILS, SLEEPS = "lab.example/fails:1", "lab.example/sleeps:1"
PRODUCT, STRATEGY = "nvidia.com/gpu.product", "nvidia.com/mig.strategy"
ALPHA = "alpha.kubernetes.io/nvidia-gpu-name"


@pytest.fixture
def place() -> Iterator[Path]:
    with trusted_directory() as directory:
        yield directory


def test_a_cluster_by_its_kubeconfig_alone(lab: Lab, tmp_path: Path, place: Path) -> None:
    cluster = Cluster(lab, tmp_path, "containerd", gpu="h100")
    host = cluster.host
    guide_images.load(host)
    for name, words in {FAILS: "echo CUDA error 999; exit 3", SLEEPS: "exec sleep 6000"}.items():
        write_image(host.path("/root/one.tar"), name, command=("/bin/sh", "-c", words))
        host.nsrun("ctr -n k8s.io images import /root/one.tar", check=True)
    admin = Kubeconfig(cluster, place, "admin")
    said = expect(labels(cluster, admin.path), 4).stderr
    assert f"the cluster has no node {host.name}" in said
    assert f'nodes "{host.name}" not found' in said
    cluster.join()
    host.nsrun("mv /usr/bin/kubectl /usr/bin/kubectl.away", check=True)
    relabelled(cluster, admin.path)
    by_the_node(cluster, Kubeconfig(cluster, place, host.name).path)
    without_rights(cluster, place)
    verified(cluster, admin.path)
    the_pod(cluster, admin.path, place)


class Kubeconfig:
    """Everything in one file, as it is handed to a CI job."""

    def __init__(self, cluster: Cluster, place: Path, name: str, *, authority: str = "ca.crt") -> None:
        def data(file: str) -> str:
            return base64.b64encode(cluster.plane.file(file).encode()).decode()

        server = f"https://{cluster.plane.host.addr}:{PORT}"
        one = {"server": server, "certificate-authority-data": data(authority)}
        user = {"client-certificate-data": data(f"{name}.crt"), "client-key-data": data(f"{name}.key")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": one}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": f"{name}@lab", "context": {"cluster": "lab", "user": name}}],
            "current-context": f"{name}@lab",
        }
        self.path = place / f"{name}-{authority}.conf"
        self.path.write_text(json.dumps(document))
        self.path.chmod(0o600)


def labels(cluster: Cluster, kubeconfig: Path, *words: str) -> Result:
    return cluster.me.gpunode(cluster.host, "k8s", "labels", "--kubeconfig", str(kubeconfig), "--yes", *words)


def on_the_node(cluster: Cluster) -> dict[str, str]:
    found: dict[str, str] = cluster.node()["metadata"]["labels"]
    return found


def relabelled(cluster: Cluster, admin: Path) -> None:
    """Set, changed, taken away; nobody else's."""
    cluster.plane.kubectl("label", "node", cluster.host.name, "team=ml", "nvidia.com/gpu.family=of-somebody")
    before = on_the_node(cluster)
    first = expect(labels(cluster, admin, "--mig-strategy", "single"), 0)
    assert "somebody else set it to 'of-somebody'; the facts say 'hopper'" in " ".join(first.stderr.split())
    now = on_the_node(cluster)
    assert (now[PRODUCT], now[STRATEGY]) == ("NVIDIA-H100-80GB-HBM3", "single")
    assert {name: value for name, value in now.items() if name in before} == before
    assert "no changes" in expect(labels(cluster, admin, "--mig-strategy", "single"), 0).stdout
    expect(labels(cluster, admin), 0)
    now = on_the_node(cluster)
    assert (now[PRODUCT], now["team"], now["nvidia.com/gpu.family"]) == ("NVIDIA-H100-80GB-HBM3", "ml", "of-somebody")
    assert STRATEGY not in now
    cluster.plane.kubectl("label", "node", cluster.host.name, "--overwrite", f"{PRODUCT}=of-somebody")
    expect(labels(cluster, admin), 0)
    assert on_the_node(cluster)[PRODUCT] == "of-somebody"
    cluster.plane.kubectl("label", "node", cluster.host.name, f"{PRODUCT}-")
    expect(labels(cluster, admin), 0)
    assert on_the_node(cluster)[PRODUCT] == "NVIDIA-H100-80GB-HBM3"


def by_the_node(cluster: Cluster, own: Path) -> None:
    """The node's own identity: what NodeRestriction refuses is said and left out, and the rest is set."""
    cluster.plane.kubectl("label", "node", cluster.host.name, f"{PRODUCT}-")
    done = expect(labels(cluster, own, "--kubernetes", "1.15"), 0)
    assert f"{ALPHA}" in done.stderr
    assert "NodeRestriction refuses it to the node's own identity" in " ".join(done.stderr.split())
    assert on_the_node(cluster)[PRODUCT] == "NVIDIA-H100-80GB-HBM3"
    assert ALPHA not in on_the_node(cluster)
    said = expect(labels(cluster, own, "--node", "gpu02"), 4).stderr
    assert "NodeRestriction lets a node change itself alone" in " ".join(said.split())


def without_rights(cluster: Cluster, place: Path) -> None:
    cluster.plane.certify("nobody", "/CN=nobody")
    nobody = Kubeconfig(cluster, place, "nobody").path
    said = " ".join(expect(labels(cluster, nobody), 3).stderr.split())
    assert f'nodes "{cluster.host.name}" is forbidden: User "nobody" cannot get resource "nodes"' in said
    stranger = Kubeconfig(cluster, place, "admin", authority="apiserver.crt").path
    said = " ".join(expect(labels(cluster, stranger), 3).stderr.split())
    assert "its certificate is not accepted" in said


def chain(cluster: Cluster, kubeconfig: Path | None, *words: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit code; and of every link its state and words."""
    more = ("--kubeconfig", str(kubeconfig)) if kubeconfig else ()
    done = cluster.me.gpunode(cluster.host, "k8s", "verify", "--json", *more, *words)
    assert '"links"' in done.stdout, done.stdout + done.stderr
    (one,) = json.loads(done.stdout)["hosts"]
    return done.returncode, {link["link"]: (link["state"], link["evidence"]) for link in one["links"]}


def verified(cluster: Cluster, admin: Path) -> None:
    """A node without a kubectl cannot say what its object is; the cluster can."""
    cluster.plane.create(kubelet.RUNTIME_CLASS)
    code, links = chain(cluster, admin, "--pod")
    assert (code, links["socket"][0], links["pod"][0]) == (1, "missing", "not reached")
    cluster.plane.create(kubelet.plugin(cluster.host.name))
    cluster.wait(lambda: cluster.gpus() == (1, 1), "GPU in capacity and allocatable")
    code, links = chain(cluster, None)
    assert (code, links["allocatable"][0]) == (1, "unknown")
    assert "no kubectl of root is here" in links["allocatable"][1]
    code, links = chain(cluster, admin)
    assert (code, links["allocatable"]) == (0, ("ok", "capacity nvidia.com/gpu 1; allocatable nvidia.com/gpu 1"))
    cluster.plane.kubectl("cordon", cluster.host.name)
    code, links = chain(cluster, admin)
    assert (code, links["allocatable"][0]) == (1, "missing")
    cluster.plane.kubectl("uncordon", cluster.host.name)


def the_pod(cluster: Cluster, admin: Path, place: Path) -> None:
    code, links = chain(cluster, admin, "--pod")
    assert (code, links["pod"]) == (0, ("ok", "Succeeded (0 Completed); its last line: Test PASSED"))
    assert pods(cluster) == []
    code, links = chain(cluster, admin, "--pod", "--image", FAILS)
    assert (code, links["pod"]) == (1, ("missing", "Failed (3 Error); its last line: CUDA error 999"))
    assert pods(cluster) == []
    own = Kubeconfig(cluster, place, cluster.host.name).path
    code, links = chain(cluster, own, "--pod")
    assert (code, links["pod"][0]) == (1, "unknown")
    assert "which may not: NodeRestriction: mirror pods alone" in links["pod"][1]
    interrupted(cluster, admin)
    cluster.plane.create(kubelet.pod("busy", cluster.host.name, "exec sleep 6000", gpus=1))
    cluster.wait(
        lambda: cluster.plane.get("pod", "busy").get("status", {}).get("phase") == "Running", "pod with the GPU"
    )
    code, links = chain(cluster, admin, "--pod")
    assert (code, links["pod"][0]) == (1, "unknown"), links
    assert "requested number of devices unavailable for nvidia.com/gpu" in links["pod"][1]
    assert pods(cluster) == ["busy"]


def interrupted(cluster: Cluster, admin: Path) -> None:
    """What a killed gpunode leaves is ended by its own deadline, and is told by its label."""
    words = ("k8s", "verify", "--pod", "--kubeconfig", str(admin), "--image", SLEEPS, "--ssh", cluster.host.name)
    argv, env = (sys.executable, "-m", "gpunode", *words), cluster.me.env(cluster.host)
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        cluster.wait(lambda: pods(cluster), "pod that sleeps")
        run.kill()
    (left,) = cluster.plane.get("pods", "-l", "app.kubernetes.io/managed-by=gpunode")["items"]
    assert left["spec"]["activeDeadlineSeconds"] == 120
    cluster.plane.kubectl("delete", "pod", left["metadata"]["name"], "--grace-period", "1")


def pods(cluster: Cluster) -> list[str]:
    """Their names in the namespace default."""
    found: list[dict[str, Any]] = cluster.plane.get("pods").get("items", [])
    return [one["metadata"]["name"] for one in found]
