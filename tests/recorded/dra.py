"""A constructed node of kubeadm's whose GPUs NVIDIA's DRA driver gives out, on an engine in which CDI is off."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.recorded.more_hosts import OPEN_SET
from tests.recorded.nouns import Driver, GpuModel, Recipe, ubuntu
from tests.recorded.sick import listed, sick, smi_xml

H200 = GpuModel("2335", "GH100 [H200 SXM 141GB]", 8, "10de:18be", bar1_gib=256)
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-87-generic")
CONFIG = """version = 2

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
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
registry=gpu.nvidia.com-reg.sock
registered={}
pods=read
entries=whole
allocated=0
"""
NODE = """condition=MemoryPressure False KubeletHasSufficientMemory
condition=DiskPressure False KubeletHasNoDiskPressure
condition=PIDPressure False KubeletHasSufficientPID
condition=Ready True KubeletReady
images=read
"""


def _cri() -> str:
    runtimes = {"runc": {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}}
    config = {"containerd": {"defaultRuntimeName": "runc", "runtimes": runtimes}, "enableCDI": False}
    return f"source=crictl\n{json.dumps(config)}\n"


def _node() -> Recipe:
    set_up = sick(
        Recipe(
            "ubuntu2404-dra136-h200",
            "kubeadm 1.36 with containerd 1.7: the DRA driver is there, and CDI is off",
            UBUNTU2404,
            (H200,),
            containerd="1.7.28",
            containerd_config=CONFIG,
            kubelet=True,
            driver=Driver("595.91.07", "open", OPEN_SET),
            toolkit="1.20.0",
            packages=("kubelet=1.36.2-1.1", "kubectl=1.36.2-1.1", "linux-headers-generic=24.04.1"),
            smi=(smi_xml("595.91.07", "13.2", listed(H200, "NVIDIA H200", 143771, {})), 0),
            options=DRA_OPTIONS,
        )
    )
    sections = {
        "blacklist": "/etc/modprobe.d/nouveau.conf:blacklist nouveau\n",
        "kubernetes": KUBELET,
        "kubelet:version": "Kubernetes v1.36.2\n",
        "node": NODE,
        "containerd:1100:cri": _cri(),
    }
    return replace(set_up, sections=(*set_up.sections, *sections.items()))


DRA_OPTIONS = ("--kubernetes-mode", "dra")
DRA: tuple[Recipe, ...] = (_node(),)
