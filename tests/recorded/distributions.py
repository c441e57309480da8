"""Constructed nodes of k3s, rke2, k0s, microk8s and AKS with GPUs in use, and with what keeps their kubelet down."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.recorded.engines import (
    MICROK8S_ARGS,
    MICROK8S_KUBELET,
    MICROK8S_TEMPLATE,
    MICROK8S_TOLD,
    V2,
    containerd_of,
    kubelet_of_rancher,
    rancher,
)
from tests.recorded.kubelets import kubelet
from tests.recorded.more_hosts import OPEN_SET
from tests.recorded.nodes import CONDITIONS, registered
from tests.recorded.nouns import Driver, Engine, GpuModel, Recipe, System, debian, ubuntu
from tests.recorded.sick import addresses, listed, sick, smi_xml

L4 = GpuModel("27b8", "AD104GL [L4]", subsystem="10de:16ee", bar1_gib=32)
T4 = GpuModel("1eb8", "TU104GL [Tesla T4]", subsystem="10de:12a2")
A30 = GpuModel("20b7", "GA100GL [A30 PCIe]", 2, "10de:1532", bar1_gib=32)
A100 = GpuModel("20b5", "GA100 [A100 PCIe 80GB]", 1, "10de:1533", bar1_gib=128)
UBUNTU2204 = ubuntu("22.04", "jammy", "5.15.0-161-generic")
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-87-generic")
DEBIAN12 = debian("12", "bookworm", "6.1.0-41-amd64")
PLUGINS = "plugins=/var/lib/kubelet/device-plugins\nkubelet.sock=1\npod-resources=1\n"
NOUVEAU = ("blacklist", "/etc/modprobe.d/nouveau.conf:blacklist nouveau\n")


def _uuid(model: GpuModel) -> list[str]:
    return [f"GPU-00000000-0000-4000-8000-0000000000{address[5:7]}" for address in addresses(model)]


def _set_up(
    slug: str,
    title: str,
    system: System,
    model: GpuModel,
    name: str,
    mib: int,
    one: Engine,
    *more: tuple[str, str],
    toolkit: str | None = "1.20.1",
    containerd: str | None = None,
    containerd_config: str | None = None,
) -> Recipe:
    """Driver and toolkit are there and work; what differs is Kubernetes."""
    packages = ("linux-headers-generic=24.04.1", "linux-headers-amd64=6.1.1")
    recipe = sick(
        Recipe(
            slug, title, system, (model,), engine=one, driver=Driver("595.91.07", "open", OPEN_SET),
            toolkit=toolkit, containerd=containerd, containerd_config=containerd_config, packages=packages,
            smi=(smi_xml("595.91.07", "13.2", listed(model, name, mib, {})), 0), identity=("cgroup=v2",),
        )
    )  # fmt: skip
    return replace(recipe, sections=(*recipe.sections, NOUVEAU, *more))


def _offered(model: GpuModel, label: str) -> tuple[str, str]:
    count = f"nvidia.com/gpu {model.count}\n"
    return ("node", f"capacity={count}allocatable={count}{CONDITIONS}label={label}\nimages=read\n")


K3S_AGENT = rancher(
    "k3s", "k3s-agent.service", "k3s-agent", "1.34.2+k3s1", "2.1.5-k3s1",
    (
        ("/etc/rancher/k3s/config.yaml", "server: https://10.0.0.1:6443\ntoken: MASKED\nnode-label:\n  - pool=gpu\n"),
        ("/etc/rancher/k3s/config.yaml.d/99-gpunode.yaml", "# Written by gpunode.\ndefault-runtime: nvidia\n"),
    ),
    default="nvidia",
)  # fmt: skip
K3S_GATE = "# pinned cores\nkubelet-arg:\n  - feature-gates=CPUManager=true\n"
K3S_DOWN = Engine(
    stopped=(("k3s-agent.service", "/usr/local/bin/k3s agent"),),
    sections=(
        ("k3s:version", "k3s version v1.33.6+k3s1 (4ec9b7c1)\ngo version go1.24.6\n"),
        ("kubernetes", kubelet_of_rancher("k3s", down=True)),
    ),
    files=(("/etc/rancher/k3s/config.yaml", f"server: https://10.0.0.1:6443\ntoken: MASKED\n{K3S_GATE}"),),
    tools=("/usr/local/bin/k3s",),
)
RKE2_AGENT = rancher(
    "rke2", "rke2-agent.service", "rke2", "1.33.6+rke2r1", "2.1.5-k3s1",
    (
        (
            "/etc/rancher/rke2/config.yaml",
            "server: https://10.0.0.1:9345\ntoken: MASKED\ndefault-runtime: nvidia\nkubelet-arg:\n"
            "  # pinned cores\n  - feature-gates=CPUManager=true,TopologyManager=true\n  - cpu-manager-policy=static\n"
            "  - node-labels=pool=gpu,alpha.kubernetes.io/nvidia-gpu-name=A30\n",
        ),
    ),
    default="nvidia",
    down=True,
)  # fmt: skip
K0S_PROFILE = """apiVersion: kubelet.config.k8s.io/v1beta1
cgroupDriver: cgroupfs
failSwapOn: false
featureGates:
  CPUManager: true
kind: KubeletConfiguration
"""
K0S = Engine(
    units=(("k0sworker.service", 900, "k0s", "/usr/local/bin/k0s worker --profile=pinned --token-file=/etc/k0s/t"),),
    children=(
        (910, "containerd", 900, "k0sworker.service",
         "/var/lib/k0s/bin/containerd --root=/var/lib/k0s/containerd --state=/run/k0s/containerd "
         "--address=/run/k0s/containerd.sock --config=/etc/k0s/containerd.toml"),
    ),
    sections=(
        *containerd_of(910, "1.7.29", "/etc/k0s/containerd.toml", "/run/k0s/containerd.sock", 2, default="nvidia"),
        ("k0s:version", "v1.33.6+k0s.0\n"),
        ("kubernetes", "mark=/etc/k0s\nconfig=/var/lib/k0s/kubelet-config.yaml\nsettings=read\ncgroupDriver=cgroupfs\n"
         "gate=CPUManager=true\nfailSwapOn=false\nkubeconfig=/var/lib/k0s/kubelet.conf\n"),
    ),
    files=(
        ("/etc/k0s/containerd.toml",
         '# k0s_managed=true\nversion = 2\nimports = [\n\t"/run/k0s/containerd-cri.toml",\n]\n'),
        ("/etc/k0s/containerd.d/nvidia.toml",
         f"""version = 2
[plugins."{V2}".containerd]
  default_runtime_name = "nvidia"
[plugins."{V2}".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  [plugins."{V2}".containerd.runtimes.nvidia.options]
    BinaryName = "/usr/bin/nvidia-container-runtime"
"""),
        ("/var/lib/k0s/kubelet-config.yaml", K0S_PROFILE),
    ),
    tools=("/usr/local/bin/k0s",),
)  # fmt: skip
# `microk8s enable nvidia` installs the GPU Operator, whose toolkit writes itself into microk8s' template.
ADDON_TEMPLATE = (
    MICROK8S_TEMPLATE.replace("${RUNTIME}", "nvidia")
    + f"""
    [plugins."{V2}".containerd.runtimes.nvidia]
      runtime_type = "${{RUNTIME_TYPE}}"
      [plugins."{V2}".containerd.runtimes.nvidia.options]
        BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
"""
)
VALIDATED = "".join(f"validation={one}-ready\n" for one in ("driver", "toolkit", "cuda", "plugin"))
VALIDATOR = "pod=gpu-operator-resources_nvidia-operator-validator-k2x8p nvidia-operator-validator 0\n"
MICROK8S = Engine(
    units=(
        ("snap.microk8s.daemon-containerd.service", 910, "containerd",
         f"/snap/microk8s/8148/bin/containerd --config {MICROK8S_ARGS}/containerd.toml "
         "--address /var/snap/microk8s/common/run/containerd.sock"),
        ("snap.microk8s.daemon-kubelite.service", 920, "kubelite", "/snap/microk8s/8148/kubelite"),
    ),
    sections=(
        *containerd_of(910, "1.7.28", f"{MICROK8S_ARGS}/containerd.toml",
                       "/var/snap/microk8s/common/run/containerd.sock", 2, default="nvidia"),
        ("microk8s:version", "MicroK8s v1.34.1\n"),
        ("toolkit", "operator=/usr/local/nvidia/toolkit\n"),
        ("kubernetes", f"{MICROK8S_KUBELET}{PLUGINS}{registered(_uuid(T4))}{VALIDATOR}{VALIDATED}"),
        _offered(T4, "microk8s.io/cluster true"),
    ),
    files=(
        ("/var/snap/microk8s/current/args/containerd-template.toml", ADDON_TEMPLATE),
        ("/var/snap/microk8s/current/args/kubelet", MICROK8S_TOLD),
    ),
    tools=("/usr/bin/snap",),
)  # fmt: skip
# AKS' images have driver and toolkit, and a handler of another name than NVIDIA's tools give it.
AKS_CONTAINERD = f"""version = 2
oom_score = -999
[plugins."{V2}"]
  sandbox_image = "mcr.microsoft.com/oss/kubernetes/pause:3.6"
  [plugins."{V2}".containerd]
    default_runtime_name = "nvidia-container-runtime"
    [plugins."{V2}".containerd.runtimes.nvidia-container-runtime]
      runtime_type = "io.containerd.runc.v2"
      [plugins."{V2}".containerd.runtimes.nvidia-container-runtime.options]
        BinaryName = "/usr/bin/nvidia-container-runtime"
        SystemdCgroup = true
"""
AKS_CRI = "source=python3\n" + json.dumps(
    {
        "containerd": {
            "defaultRuntimeName": "nvidia-container-runtime",
            "runtimes": {
                "nvidia-container-runtime": {
                    "runtimeType": "io.containerd.runc.v2",
                    "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True},
                }
            },
        },
        "enableCDI": True,
    }
)
AKS_UNIT = "/etc/systemd/system/kubelet.service"
AKS_STARTS = """[Service]
EnvironmentFile=/etc/default/kubelet
ExecStart=/usr/local/bin/kubelet --node-labels=${KUBELET_NODE_LABELS} $KUBELET_FLAGS
"""
AKS_KUBELET = """mark=/etc/kubernetes/manifests
cloud=aks
running=1
flag=systemd
arg=feature-gates=RotateKubeletServerCertificate=true
arg=node-labels=agentpool=gpu,kubernetes.azure.com/accelerator=nvidia
binary=/usr/local/bin/kubelet
config=/var/lib/kubelet/config.yaml
kubeconfig=/var/lib/kubelet/kubeconfig
"""
AKS_DEFAULTS = (
    "KUBELET_FLAGS=--cgroup-driver=systemd --feature-gates=RotateKubeletServerCertificate=true "
    "--container-runtime-endpoint=unix:///run/containerd/containerd.sock\n"
    "KUBELET_NODE_LABELS=agentpool=gpu,kubernetes.azure.com/accelerator=nvidia\n"
)

DISTRIBUTIONS: tuple[Recipe, ...] = (
    _set_up(
        "ubuntu2404-k3s-agent-l4", "a k3s agent whose L4 the cluster gives out", UBUNTU2404, L4,
        "NVIDIA L4", 23034, K3S_AGENT,
        ("kubernetes", f"{kubelet_of_rancher('k3s')}{PLUGINS}{registered(_uuid(L4))}"),
        _offered(L4, "pool gpu"),
    ),
    _set_up(
        "ubuntu2204-rke2-old-gates-a30", "an rke2 agent upgraded to 1.33 with kubelet-arg of 1.28: its kubelet ends",
        UBUNTU2204, A30, "NVIDIA A30", 24576, RKE2_AGENT,
        ("kubernetes", f"{kubelet_of_rancher('rke2', down=True)}{PLUGINS}"),
    ),
    _set_up(
        "debian12-k0s-old-gate-a30", "a k0s worker upgraded to 1.33 with a worker profile of before: its kubelet ends",
        DEBIAN12, A30, "NVIDIA A30", 24576, K0S,
    ),
    _set_up(
        "ubuntu2204-microk8s-addon-t4", "microk8s with its nvidia addon, which is the GPU Operator",
        UBUNTU2204, T4, "Tesla T4", 15360, MICROK8S, toolkit=None,
    ),
    _set_up(
        "ubuntu2204-aks134-a100", "a node of Azure AKS 1.34, with what its image has", UBUNTU2204, A100,
        "NVIDIA A100 80GB PCIe", 81920, kubelet("1.34.2", {AKS_UNIT: AKS_STARTS, "/etc/default/kubelet": AKS_DEFAULTS}),
        ("kubernetes", f"{AKS_KUBELET}{PLUGINS}{registered(_uuid(A100))}"),
        _offered(A100, "kubernetes.azure.com/accelerator nvidia"),
        ("containerd:1100:cri", AKS_CRI),
        containerd="2.1.5", containerd_config=AKS_CONTAINERD,
    ),
    _set_up(
        "ubuntu2404-k3s-old-gate-l4", "a k3s agent upgraded to 1.33 with a gate of before: it ends", UBUNTU2404, L4,
        "NVIDIA L4", 23034, K3S_DOWN,
    ),
)  # fmt: skip
