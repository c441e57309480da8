"""Constructed nodes of Kubernetes whose driver, toolkit and containerd are set up: what differs is the plugin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from tests.recorded.more_hosts import OPEN_SET
from tests.recorded.nouns import Driver, GpuModel, Recipe, ubuntu
from tests.recorded.sick import addresses, listed, sick, smi_xml

L40S = GpuModel("26b9", "AD102GL [L40S]", 2, "10de:1851", bar1_gib=64)
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-87-generic")
CONFIG = """version = 2

[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
    BinaryName = "/usr/bin/nvidia-container-runtime"
    SystemdCgroup = true
"""
UUIDS = [f"GPU-00000000-0000-4000-8000-0000000000{address[5:7]}" for address in addresses(L40S)]
POD = "kube-system_nvidia-device-plugin-daemonset-x7x2k nvidia-device-plugin-ctr"
KUBELET = """mark=/etc/kubernetes/kubelet.conf
mark=/etc/kubernetes/manifests
running=1
binary=/usr/bin/kubelet
config=/var/lib/kubelet/config.yaml
settings=read
cgroupDriver=systemd
plugins=/var/lib/kubelet/device-plugins
kubelet.sock=1
pod-resources=1
"""


def registered(uuids: Sequence[str]) -> str:
    """NVIDIA's plugin runs, and the kubelet has these GPUs from it."""
    devices = json.dumps({"nvidia.com/gpu": [*uuids]}, separators=(",", ":"))
    return f"""socket=1 nvidia-gpu.sock
registered={devices}
plugin=4711
made=1
image=nvcr.io/nvidia/k8s-device-plugin:v0.18.0
env=DEVICE_LIST_STRATEGY=envvar
pods=read
pod={POD} 0
plugin-configs=read
entries=whole
allocated=0
"""


DIED = f"""registered={{"nvidia.com/gpu":[]}}
pods=read
pod={POD} 6
"""
CONDITIONS = """condition=MemoryPressure False KubeletHasSufficientMemory
condition=DiskPressure False KubeletHasNoDiskPressure
condition=PIDPressure False KubeletHasSufficientPID
condition=Ready True KubeletReady
"""


def _cri() -> str:
    runtimes = {
        name: {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
        for name in ("runc", "nvidia")
    }
    config = {"containerd": {"defaultRuntimeName": "nvidia", "runtimes": runtimes}, "enableCDI": False}
    return f"source=crictl\n{json.dumps(config)}\n"


def _node(slug: str, title: str, plugin: str, capacity: int) -> Recipe:
    set_up = sick(
        Recipe(
            slug,
            title,
            UBUNTU2404,
            (L40S,),
            containerd="1.7.28",
            containerd_config=CONFIG,
            kubelet=True,
            driver=Driver("595.91.07", "open", OPEN_SET),
            toolkit="1.20.0",
            packages=("kubelet=1.34.2-1.1", "kubectl=1.34.2-1.1", "linux-headers-generic=24.04.1"),
            smi=(smi_xml("595.91.07", "13.2", listed(L40S, "NVIDIA L40S", 46068, {})), 0),
        )
    )
    offers = f"capacity=nvidia.com/gpu {capacity}\nallocatable=nvidia.com/gpu {capacity}\n"
    sections = {
        "blacklist": "/etc/modprobe.d/nouveau.conf:blacklist nouveau\n",
        "kubernetes": KUBELET + plugin,
        "kubelet:version": "Kubernetes v1.34.2\n",
        "node": f"{offers}{CONDITIONS}images=read\nimage=nvcr.io/nvidia/k8s-device-plugin:v0.18.0\n",
        "containerd:1100:cri": _cri(),
    }
    return replace(set_up, sections=(*set_up.sections, *sections.items()))


NODES: tuple[Recipe, ...] = (
    _node(
        "ubuntu2404-node-l40s",
        "a node of kubeadm's: the device plugin has registered both L40S",
        registered(UUIDS),
        2,
    ),
    _node(
        "ubuntu2404-node-plugin-died-l40s",
        "a node of kubeadm's whose device plugin ends before it registers",
        DIED,
        0,
    ),
)
