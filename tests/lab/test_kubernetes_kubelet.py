"""A real kubelet 1.20.2 that does not start: what gpunode takes out, what it puts back, and whose words it reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from . import kubelet
from .cluster import Cluster
from .host import Result
from .lab import Lab
from .product_runs import expect

PLUGIN = "nvidia-device-plugin-daemonset-lab01"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
ONLY = ("--only", "kubernetes")
OWN = f"{kubelet.DROP_IN.rpartition('/')[0]}/20-gates.conf"
CONFIGURATION = f"""{kubelet.SETTINGS.format(driver="cgroupfs")}# ours
featureGates:
  # for the GPUs
  Accelerators: true
  CPUManager: true   # stays
  DevicePluginCDIDevices: true
"""
FLAGS = (
    'KUBELET_KUBEADM_ARGS="--container-runtime=remote --feature-gates=Accelerators=true,CPUManager=true '
    f"--container-runtime-endpoint=/run/containerd/containerd.sock --node-labels={LABEL}=x,nvidia.com/gpu.present=true "
    f'--pod-infra-container-image={kubelet.PAUSE}"\n'
)
GATES = f"""# ours
[Service]
Environment="KUBELET_CONFIG_ARGS=--config={kubelet.CONFIG} --feature-gates=DevicePluginCDIDevices=true"
"""
# A file that only the site's own unit knows: gpunode does not look into it.
SITE = "/etc/site/kubelet.env"
UNIT = kubelet.KUBEADM.replace("ExecStart=\n", f"EnvironmentFile=-{SITE}\nExecStart=\n").replace(
    "$KUBELET_EXTRA_ARGS", "$KUBELET_EXTRA_ARGS $SITE_ARGS"
)


@dataclass(frozen=True)
class Node:
    """One that was Ready, with its device plugin registered."""

    cluster: Cluster

    def setup(self, *words: str) -> Result:
        return self.cluster.me.gpunode(self.cluster.host, "setup", "--yes", *words)

    def break_with(self, files: dict[str, str]) -> None:
        """The kubelet with these files, down."""
        for path, text in files.items():
            self.cluster.host.write(path, text)
        self.cluster.host.nsrun("systemctl daemon-reload && systemctl restart kubelet", check=True)
        self.cluster.wait(lambda: not self.is_up(), "end of the kubelet")

    def is_up(self) -> bool:
        shown = self.cluster.host.nsrun("systemctl is-active kubelet; curl -s -m 2 http://127.0.0.1:10248/healthz")
        return shown.stdout.split() == ["active", "ok"]

    def heartbeat(self) -> str:
        """ "2026-11-25T20:52:06Z": when the kubelet last said that the node is Ready."""
        found = (one for one in self.cluster.node()["status"]["conditions"] if one["type"] == "Ready")
        return "".join(one["lastHeartbeatTime"] for one in found if one["status"] == "True")

    def registrations(self) -> int:
        return sum("Registered" in line for line in self.cluster.said(PLUGIN))

    def text(self, path: str) -> str:
        return self.cluster.host.path(path).read_text()


def node_of(lab: Lab, directory: Path, engine: str = "containerd") -> Node:
    cluster = Cluster(lab, directory, engine, gpu="h100")
    cluster.host.write(kubelet.DROP_IN, UNIT)
    cluster.host.nsrun("systemctl daemon-reload", check=True)
    cluster.join()
    return Node(cluster)


def test_what_it_does_not_start_with_is_taken_out_and_put_back(lab: Lab, tmp_path: Path) -> None:
    node = node_of(lab, tmp_path)
    cluster, host = node.cluster, node.cluster.host
    cluster.plane.create(kubelet.RUNTIME_CLASS, kubelet.plugin(host.name))
    cluster.wait(lambda: cluster.gpus() == (1, 1), "GPU in capacity and allocatable")
    well = node.text(kubelet.CONFIG)
    kept = f"{well}# ours\nfeatureGates:\n  # for the GPUs\n  CPUManager: true   # stays\n"
    bad = {kubelet.CONFIG: CONFIGURATION, kubelet.FLAGS: FLAGS, OWN: GATES}
    mended(node, kubelet.CONFIG, CONFIGURATION, kept, *ONLY)
    mended(node, kubelet.FLAGS, FLAGS, FLAGS.replace("Accelerators=true,", "").replace(f"{LABEL}=x,", ""))
    mended(node, OWN, GATES, GATES.replace(" --feature-gates=DevicePluginCDIDevices=true", ""))
    expect(cluster.me.gpunode(host, "undo", "--yes", "--allow-container-loss"), 0)
    assert {path: node.text(path) for path in bad} == bad
    assert node.is_up(), "an undo does not start it with what it does not start with"
    node.break_with({})


def mended(node: Node, path: str, bad: str, good: str, *words: str) -> None:
    """By a setup: the file, the kubelet, its node and the device plugin's registration."""
    before, registered = node.heartbeat(), node.registrations()
    node.break_with({path: bad})
    expect(node.setup(*words), 0)
    assert node.text(path) == good
    assert node.is_up()
    node.cluster.wait(lambda: node.heartbeat() > before, "node that is Ready again")
    node.cluster.wait(lambda: node.registrations() > registered, "plugin that registers anew")
    node.cluster.wait(lambda: node.cluster.gpus() == (1, 1), "GPU after the restart")


# What gpunode does not know to fail, or cannot see; and what the kubelet says of it.
FAULTS = {
    f"--node-labels={LABEL}=x": "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels",
    "--feature-gates=GateOfTheFuture=true": "unrecognized feature gate: GateOfTheFuture",
    "--max-pods=token=hunter2": 'invalid argument "token=MASKED" for "--max-pods" flag',
}


def test_one_that_stays_down_is_reported_in_its_own_words(lab: Lab, tmp_path: Path) -> None:
    """After a change of the kubelet's files, and after one of its engine, which systemd restarts it with."""
    node = node_of(lab, tmp_path)
    host = node.cluster.host
    flags = node.text(kubelet.FLAGS).replace('ARGS="', 'ARGS="--feature-gates=Accelerators=true ')
    for fault, words in FAULTS.items():
        files = {kubelet.FLAGS: flags, SITE: f"SITE_ARGS={fault}\n"}
        node.break_with(files)
        said = expect(node.setup(*ONLY), 1).stdout
        assert f"kubelet.service: its process does not stay; its last words: {words}" in flat(said)
        assert "unrecognized feature gate: Accelerators" not in flat(said), "the words of the one before"
        assert "goroutine" not in said
        assert "hunter2" not in said
        assert {path: node.text(path) for path in files} == files
    host.write(kubelet.FLAGS, flags.replace("--feature-gates=Accelerators=true ", ""))
    host.nsrun("systemctl restart kubelet", check=True)
    unknown = expect(node.setup(*ONLY), 0)
    assert "does not run, and not for a gate, a flag or a label that gpunode knows" in flat(
        unknown.stdout + unknown.stderr
    )
    its_engine_is_changed(node)


SCRIPT = """#!/bin/sh
grep -q 'default_runtime_name = .runc' /etc/containerd/config.toml && set -- "$@" --only-with-nvidia
exec /usr/bin/kubelet "$@"
"""


def its_engine_is_changed(node: Node) -> None:
    """A start script of the site's refuses what gpunode makes of containerd's file; then, nothing would start it."""
    cluster, host = node.cluster, node.cluster.host
    host.write("/usr/local/bin/kubelet", SCRIPT, 0o755)
    host.write(kubelet.DROP_IN, "[Unit]\nPartOf=containerd.service\n" + UNIT.replace("=/usr/bin/", "=/usr/local/bin/"))
    host.write(SITE, "SITE_ARGS=\n")
    host.nsrun("systemctl daemon-reload && systemctl restart kubelet", check=True)
    cluster.wait(node.is_up, "kubelet with the site's script")
    before, text = node.heartbeat(), node.text("/etc/containerd/config.toml")
    said = expect(node.setup("--only", "runtime", "--no-default"), 1).stdout
    assert "kubelet.service: its process does not stay; its last words: unknown flag: --only-with-nvidia" in flat(said)
    assert node.text("/etc/containerd/config.toml") == text
    assert node.is_up()
    cluster.wait(lambda: node.heartbeat() > before, "node that is Ready again")
    host.write(SITE, "SITE_ARGS=--frobnicate\n")
    said = expect(node.setup("--only", "runtime", "--no-default"), 5).stdout
    assert "the rollback failed too: after the files were restored" in flat(said)
    assert "its last words: unknown flag: --frobnicate" in flat(said)
    assert node.text("/etc/containerd/config.toml") == text


def test_a_wrong_cgroup_driver_is_reported_in_its_own_words(lab: Lab, tmp_path: Path) -> None:
    node = node_of(lab, tmp_path, "docker")
    daemon = node.text("/etc/docker/daemon.json")
    options = '{\n  "exec-opts": ["native.cgroupdriver=cgroupfs"],'
    node.cluster.host.write("/etc/docker/daemon.json", daemon.replace("{", options, 1))
    node.cluster.host.nsrun("systemctl restart docker", check=True)
    bad = kubelet.SETTINGS.format(driver="systemd") + "featureGates:\n  Accelerators: true\n"
    node.break_with({kubelet.CONFIG: bad})
    said = flat(expect(node.setup(*ONLY), 1).stdout)
    words = 'kubelet cgroup driver: "systemd" is different from docker cgroup driver: "cgroupfs"'
    assert f"its last words: failed to run Kubelet: misconfiguration: {words}" in said
    assert node.text(kubelet.CONFIG) == bad


def flat(page: str) -> str:
    """Without the breaks of lines that a terminal's width makes."""
    return re.sub(r"\s+", " ", page)
