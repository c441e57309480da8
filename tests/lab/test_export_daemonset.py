"""`gpunode export daemonset`: what its pod runs sets a host up, from the namespaces that a pod gets; and a real API
server, with controllers, takes the objects and makes pods for labelled nodes alone.

What starts the pod is the test: a kubelet that starts a privileged one asks for a right that lab hosts lack.
"""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from gpunode.cli.app import main
from gpunode.export.daemonset import SELECTED, UNTAINT
from gpunode.kubernetes.readiness import TAINT

from .control_plane import ADMIN, ControlPlane
from .host import Host
from .lab import Lab

READY_S = 300.0
POD = "/srv/pod"
# hostPID and hostNetwork, as the DaemonSet has them: mount, uts and ipc namespaces of its own; busybox is its root.
START = f"""
unshare --mount --uts --ipc sh -c '
  mount --make-rprivate / &&
  mount -t proc proc {POD}/proc && mount --bind /dev {POD}/dev &&
  exec chroot {POD} /bin/busybox env -i PATH=/bin sh /gpunode/pod.sh'
"""


def exported(directory: Path, *words: str) -> list[dict[str, Any]]:
    assert main(["export", "daemonset", "--image", "busybox:1", *words, "--output", str(directory)]) == 0
    return list(yaml.safe_load_all((directory / "daemonset.yaml").read_text()))


def mount(host: Host, objects: list[dict[str, Any]]) -> None:
    """busybox as the container's root, and the ConfigMaps' files where the DaemonSet mounts them."""
    busybox = shutil.which("busybox")
    assert busybox
    host.write(f"{POD}/bin/busybox", Path(busybox).read_bytes(), 0o755)
    host.nsrun(f"cd {POD} && mkdir dev proc ready && chroot . /bin/busybox --install -s /bin", check=True)
    for one in objects:
        if one["kind"] == "ConfigMap":
            for name, text in one.get("data", {}).items():
                host.write(f"{POD}/gpunode/{name}", text)
            for name, text in one.get("binaryData", {}).items():
                host.write(f"{POD}/gpunode/{name}", base64.b64decode(text))


def start(host: Host) -> None:
    host.nsrun(f"rm -f {POD}/ready/done", check=True)  # a new pod's emptyDir is empty
    host.write("/usr/local/bin/start-pod", START, 0o755)
    host.nsrun("systemd-run --quiet --collect --unit=pod sh /usr/local/bin/start-pod", check=True)


def log(host: Host) -> str:
    return host.nsrun("journalctl -o cat --no-pager -u pod").stdout


def until(host: Host, happened: Callable[[], bool]) -> None:
    end = time.monotonic() + READY_S
    while not happened():
        assert time.monotonic() < end, log(host)
        time.sleep(0.5)


def is_ready(host: Host) -> bool:
    return host.exists(f"{POD}/ready/done")


def test_a_pod_has_its_host_set_itself_up(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    words = ("--driver", "595", "--flavour", "open", "--trust-key", lab.repo_fingerprint)
    mount(host, exported(tmp_path / "export", *words))
    start(host)
    until(host, lambda: is_ready(host))

    assert "nvidia" in host.read("/etc/docker/daemon.json"), log(host)
    assert host.nsrun("nvidia-smi -L").returncode == 0
    assert not host.exists(f"{POD}/etc"), "something was written into the container"
    assert host.nsrun("systemctl list-units --all --no-legend 'gpunode-*'").stdout == ""
    assert host.nsrun("stat -c %a /var/lib/gpunode/daemonset").stdout == "700\n"
    host.nsrun("timeout 20 systemctl stop pod", check=True)

    start(host)  # the node is as the spec wants it: the next pod only says so
    until(host, lambda: is_ready(host))
    assert "no changes: this host matches the spec" in log(host)
    host.nsrun("systemctl stop pod", check=True)

    host.write(f"{POD}/gpunode/spec.yaml", 'driver: "390"\n')  # which no H100 takes
    start(host)
    until(host, lambda: "setup ended with exit code 4" in log(host))
    assert not is_ready(host)
    assert host.nsrun("systemctl is-active pod").stdout == "active\n", "the kubelet would start it again and again"
    host.nsrun("systemctl stop pod", check=True)


def test_a_real_server_takes_it_and_makes_pods_for_labelled_nodes_alone(lab: Lab, tmp_path: Path) -> None:
    plane = ControlPlane(lab, tmp_path / "pki", controllers=True)
    whole = tmp_path / "export"
    exported(whole, "--kubectl-image", "kubectl:1")
    text = (whole / "daemonset.yaml").read_text()
    plane.kubectl("apply", "--server-side", "-f", "-", input=text)
    plane.kubectl("apply", "--server-side", "-f", "-", input=text)  # the same once more is no conflict
    for name, label in (("gpu01", {SELECTED[0]: SELECTED[1]}), ("gpu02", {})):
        labels = {"kubernetes.io/os": "linux", **label}
        taints = [{"key": TAINT, "value": "pending", "effect": "NoSchedule"}]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        plane.create({**node, "spec": {"taints": taints}})

    until(plane.host, lambda: nodes_of(plane) == {"gpu01"})
    plane.kubectl("label", "node", "gpu02", "=".join(SELECTED))
    until(plane.host, lambda: nodes_of(plane) == {"gpu01", "gpu02"})

    takes_the_taint_off(plane, "gpu01")
    assert TAINT not in keys(plane, "gpu01")
    assert TAINT in keys(plane, "gpu02")
    may = ("auth", "can-i", "--as", "system:serviceaccount:gpunode:gpunode-setup")
    assert plane.kubectl(*may, "delete", "nodes", check=False).stdout == "no\n"


def nodes_of(plane: ControlPlane) -> set[str]:
    """For which nodes there is a pod: its affinity names one."""
    pods = plane.get("pods", "--namespace", "gpunode")["items"]
    found = set()
    for pod in pods:
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        found.add(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
    return found


def keys(plane: ControlPlane, node: str) -> list[str]:
    return [one["key"] for one in plane.get("node", node)["spec"].get("taints", ())]


def takes_the_taint_off(plane: ControlPlane, node: str) -> None:
    """What the container runs, with the rights of its service account; a second round finds nothing to take off."""
    host = plane.host
    account = "system:serviceaccount:gpunode:gpunode-setup"
    kubectl = f'#!/bin/sh\nexec /usr/bin/kubectl --kubeconfig {ADMIN} --as {account} "$@"\n'
    host.write("/opt/as/kubectl", kubectl, 0o755)
    host.write("/ready/done", "")
    host.write("/opt/untaint", UNTAINT)
    done = host.nsrun(f"PATH=/opt/as:$PATH NODE={node} timeout 25 sh /opt/untaint 2>&1")
    assert done.stdout.count(f"node/{node} untainted") == 1, done.stdout
    assert "rror" not in done.stdout, done.stdout
