"""Whether a kubelet lives here, whose it is, and its cgroup driver."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.facts.processes import Process
from gpunode.facts.release import key_values
from gpunode.model.facts import KubernetesFacts

# Marks in the order of trust: a distribution's own directory takes precedence over a kubelet.conf it may also have.
_MARKS = (
    ("/etc/rancher/rke2", "rke2"),
    ("/etc/rancher/k3s", "k3s"),
    ("/var/snap/microk8s", "microk8s"),
    ("/etc/k0s", "k0s"),
)


def parse_kubernetes(text: str, daemons: Iterable[Process]) -> KubernetesFacts:
    """A flag beats the file; a kubelet with neither runs on its default, cgroupfs (KubeletConfiguration v1beta1):

    mark=/etc/kubernetes/kubelet.conf
    running=1
    config=/var/lib/kubelet/config.yaml
    cgroupDriver=systemd
    """
    value = key_values(text)
    marks = [line.removeprefix("mark=") for line in text.splitlines() if line.startswith("mark=")]
    comms = {daemon.comm for daemon in daemons}
    distribution = next((name for path, name in _MARKS if any(m.startswith(path) for m in marks)), None)
    if distribution is None and any(m.startswith("/etc/kubernetes") for m in marks):
        distribution = "kubeadm"
    driver = value.get("flag") or value.get("cgroupDriver", "").split("#")[0].strip().strip("\"'")
    kubelet = "running" in value or bool(comms & {"kubelet", "k3s-server", "k3s-agent", "rke2", "k0s", "kubelite"})
    if not driver and "running" in value and "unreadable" not in value:
        driver = "cgroupfs"
    return KubernetesFacts(kubelet or "binary" in value, driver or None, distribution)
