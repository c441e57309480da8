"""docs/how-to/kubernetes.md, from a prepared node to a running vector add: its commands, as they stand there.

API server, scheduler, controllers and kubelet are real (1.20.2); NVIDIA's images are stubs (guide_images.py).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from . import guide_images
from .cluster import Cluster
from .host import Result
from .lab import Lab
from .site import ROOT

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "kubernetes.md"
LIMIT_S = 90.0


def commands(heading: str) -> list[str]:
    """The indented lines below a heading of the third level."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return [line.strip() for line in found[1].splitlines() if line.startswith("    ")]


class Desk:
    """Where a person types: gpunode is here, kubectl reaches the cluster."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster, self.directory = cluster, directory

    def type(self, line: str) -> Result:
        left, _, right = line.partition(" | ")
        if not left.startswith("gpunode "):
            return self.kubectl(left)
        words = shlex.split(left)[1:]
        done = subprocess.run(
            (sys.executable, "-m", "gpunode", *words, *(["--yes"] if words[0] == "setup" else [])),
            cwd=self.directory, env=self.cluster.me.env(self.cluster.host) | {"PYTHONPATH": os.getcwd()},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return self.kubectl(right, done.stdout) if right and not done.returncode else done

    def kubectl(self, line: str, given: str | None = None) -> Result:
        """With what the shell would put in the place of $(cat FILE)."""
        line = re.sub(r'"\$\(cat ([\w.]+)\)"', lambda m: shlex.quote((self.directory / m[1]).read_text()), line)
        return self.cluster.plane.kubectl(*shlex.split(line)[1:], input=given, check=False)

    def type_all(self, lines: list[str]) -> None:
        for line in lines:
            done = self.type(line)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}{self.why()}"

    def until(self, line: str, words: str) -> None:
        """A person looks again until a pod has started."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            done = self.type(line)
            if words in done.stdout:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"{line}: {done.stdout}{done.stderr}{self.why()}")
            time.sleep(0.5)

    def why(self) -> str:
        events = self.cluster.plane.kubectl("get", "events", "-A").stdout
        logs = self.cluster.host.nsrun("tail -n 20 /var/log/pods/*/*/*.log").stdout
        return f"{events}{self.cluster.plane.kubectl('get', 'pods,daemonsets', '-A', '-o', 'wide').stdout}{logs}"


def test_the_way_to_a_running_vector_add(lab: Lab, tmp_path: Path, gpunode_site: Path) -> None:
    cluster = Cluster(lab, tmp_path, "containerd", gpu="h100", controllers=True)
    guide_images.load(cluster.host)
    cluster.host.install_gpunode(ROOT, gpunode_site)
    desk = Desk(cluster, tmp_path)
    cluster.join(desk.type("gpunode k8s readiness --form kubelet").stdout.strip())
    ready(cluster)
    today(desk)
    cluster.plane.kubectl("delete", "pod", "gpunode-vector-add")
    old(desk)


def ready(cluster: Cluster) -> None:
    """The node registers with a taint, which goes when its GPU can be used.

    Node Problem Detector and the readiness controller are not to be had for this release: the plugin's command is run
    as it is printed, and what its exit code means is done here.
    """
    key, host = "readiness.k8s.io/nvidia-gpu", cluster.host
    assert key in [one["key"] for one in cluster.node()["spec"]["taints"]]
    plugin = "gpunode check --npd --skip 'k8s.*'"
    host.nsrun("mv /usr/bin/nvidia-smi /usr/bin/nvidia-smi.away", check=True)
    assert host.run(plugin).returncode == 1, "a node without nvidia-smi is not ready"
    host.nsrun("mv /usr/bin/nvidia-smi.away /usr/bin/nvidia-smi", check=True)
    found = host.run(plugin)
    assert (found.returncode, len(found.stdout.splitlines())) == (0, 1), found.stdout + found.stderr
    cluster.plane.kubectl("taint", "node", host.name, f"{key}:NoSchedule-")


def today(desk: Desk) -> None:
    *before, last = commands("A cluster of today")
    assert len(before) == 7
    desk.type_all(before)
    desk.until(last, "Test PASSED")
    node = desk.cluster.node()
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert not node["spec"].get("taints")


def old(desk: Desk) -> None:
    """With the kubelet of 1.20 there is nothing to prepare, and nobody has the alpha resource."""
    *before, last = commands("An old cluster")
    assert len(before) == 3
    desk.type_all(before)
    desk.until("kubectl logs gpunode-vector-add", "Test PASSED")
    desk.cluster.plane.kubectl("delete", "pod", "gpunode-vector-add")
    desk.type_all([last])
    desk.until("kubectl describe pod gpunode-vector-add", "Insufficient alpha.kubernetes.io/nvidia-gpu")
    status = desk.cluster.plane.get("pod", "gpunode-vector-add")["status"]
    assert status["phase"] == "Pending", status
