"""Whether a kubelet lives here, whose it is, and what is known of it and its node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpunode.facts.device_plugins import parse_device_plugins
from gpunode.facts.kubelet import flags_of_process, kubelet_version, parse_settings, passed_on
from gpunode.facts.node import is_node_name, parse_node
from gpunode.facts.processes import Process, parse_processes
from gpunode.facts.release import key_values
from gpunode.facts.trust import daemons_of_the_host
from gpunode.facts.wire import Sections
from gpunode.model.facts import KubernetesFacts
from gpunode.model.kubernetes import CLOUDS

# Marks in the order of trust: a distribution's own directory takes precedence over a kubelet.conf it may also have.
_MARKS = (
    ("/etc/rancher/rke2", "rke2"),
    ("/etc/rancher/k3s", "k3s"),
    ("/var/snap/microk8s", "microk8s"),
    ("/etc/k0s", "k0s"),
)
_KUBELETS = {"kubelet", "k3s-server", "k3s-agent", "kubelite"}  # its own process, or one that has it inside
_STARTERS = {"rke2", "k0s"}  # one that starts it, and again whenever it ends


def parse_kubernetes(text: str, daemons: Iterable[Process]) -> KubernetesFacts:
    """A flag beats the file; a kubelet with neither runs on its default, cgroupfs (KubeletConfiguration v1beta1):

    mark=/etc/kubernetes/kubelet.conf
    cloud=eks
    running=1
    config=/var/lib/kubelet/config.yaml
    kubeconfig=/etc/kubernetes/kubelet.conf
    node-name=gpu07
    cgroupDriver=systemd
    failCgroupV1=false
    failSwapOn=false
    """
    value = key_values(text)
    marks = [line.removeprefix("mark=") for line in text.splitlines() if line.startswith("mark=")]
    comms = {daemon.comm for daemon in daemons}
    distribution = next((name for path, name in _MARKS if any(m.startswith(path) for m in marks)), None)
    if distribution is None and any(m.startswith("/etc/kubernetes") for m in marks):
        distribution = "kubeadm"
    if distribution in (None, "kubeadm"):  # whose images bring /etc/kubernetes too
        distribution = value["cloud"] if value.get("cloud") in CLOUDS else distribution
    driver = value.get("flag") or value.get("cgroupDriver", "").split("#")[0].strip().strip("\"'")
    running = "running" in value or bool(comms & _KUBELETS)
    if not driver and "running" in value and "unreadable" not in value:
        driver = "cgroupfs"
    allows = _is_false(value.get("failCgroupV1"))
    swap = None if "unreadable" in value and "failSwapOn" not in value else _is_false(value.get("failSwapOn"))
    joined = "kubeconfig" in value or any(not mark.startswith("/etc/kubernetes/manifests") for mark in marks)
    here = running or "binary" in value or bool(comms & _STARTERS)
    return KubernetesFacts(here, driver or None, distribution, allows, swap, joined, running)


def kubernetes_of(sections: Sections) -> KubernetesFacts:
    """All of it: the kubelet, what it is told, its device plugins and its node."""
    daemons = daemons_of_the_host(parse_processes(sections))
    text = sections.text("kubernetes")
    value = key_values(text)
    seen, passed = parse_kubernetes(text, daemons), passed_on(sections, daemons)
    return replace(
        seen,
        starts_on_cgroup_v1=seen.starts_on_cgroup_v1 or _is_false(passed.get("fail-cgroupv1")),
        version=kubelet_version(sections),
        settings=parse_settings(sections, daemons),
        flags=flags_of_process(daemons),
        kubeconfig=value.get("kubeconfig") or None,
        node_name=name if is_node_name(name := value.get("node-name", "")) else None,
        device_plugins=parse_device_plugins(text),
        node=parse_node(sections),
    )


def _is_false(text: str | None) -> bool:
    """`false # for now`"""
    return (text or "").split("#")[0].strip().lower() == "false"
