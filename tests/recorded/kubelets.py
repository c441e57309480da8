"""Constructed nodes of kubeadm's from 1.8 to 1.37, and one of EKS: what differs is what the kubelet is told, and where.

The places are those that kubeadm's packages and Amazon's nodeadm use; engines and systems are of the same years.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.recorded.engines import V2, V3
from tests.recorded.more_hosts import AMAZON2023, CENTOS7, UBUNTU2004
from tests.recorded.nouns import Engine, GpuModel, Recipe, System, ubuntu

UNIT = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
PACKAGED = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
CONFIG, FLAGS_ENV = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env"
DEBIANS, RED_HATS = "/etc/default/kubelet", "/etc/sysconfig/kubelet"
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
KUBECONFIG = "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
# kubeadm's packages of 1.8 to 1.10 had no file for the kubelet: everything is in the unit's drop-in.
BEFORE_FILES = f"""[Service]
Environment="KUBELET_KUBECONFIG_ARGS={KUBECONFIG}"
Environment="KUBELET_SYSTEM_PODS_ARGS=--pod-manifest-path=/etc/kubernetes/manifests --allow-privileged=true"
Environment="KUBELET_CADVISOR_ARGS=--cadvisor-port=0"
Environment="KUBELET_CGROUP_ARGS=--cgroup-driver=systemd"
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_SYSTEM_PODS_ARGS $KUBELET_CADVISOR_ARGS \
$KUBELET_CGROUP_ARGS $KUBELET_EXTRA_ARGS
"""
V100 = GpuModel("1db4", "GV100GL [Tesla V100 PCIe 16GB]", 2, "10de:1214", bar1_gib=16)
P100 = GpuModel("15f8", "GP100GL [Tesla P100 PCIe 16GB]", subsystem="10de:118f", bar1_gib=16)
T4 = GpuModel("1eb8", "TU104GL [Tesla T4]", subsystem="10de:12a2")
L4 = GpuModel("27b8", "AD104GL [L4]", subsystem="10de:16ee", bar1_gib=32)
A10 = GpuModel("2237", "GA102GL [A10G]", subsystem="10de:1511", bar1_gib=32)
A100 = GpuModel("20b5", "GA100 [A100 PCIe 80GB]", 2, "10de:1533", bar1_gib=128)
H200 = GpuModel("2335", "GH100 [H200 SXM 141GB]", 8, "10de:18be", bar1_gib=256)
UBUNTU2204 = ubuntu("22.04", "jammy", "5.15.0-161-generic")
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-87-generic")
# As kubeadm's guide has people write it.
SYSTEMD = """version = {version}

[plugins."{plugin}".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."{plugin}".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
STOPPED = "/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"


def unit(defaults: str) -> str:
    """kubeadm's drop-in since 1.11; `defaults` is the file of the distribution's family."""
    return f"""[Service]
Environment="KUBELET_KUBECONFIG_ARGS={KUBECONFIG}"
Environment="KUBELET_CONFIG_ARGS=--config={CONFIG}"
EnvironmentFile=-{FLAGS_ENV}
EnvironmentFile=-{defaults}
ExecStart=
ExecStart={STOPPED}
"""


def kubelet(version: str, files: Mapping[str, str], more: str = "", *, runs: bool = True) -> Engine:
    """A kubelet of kubeadm's with these files: what the probe says of their flags, gates and driver."""
    spoken = [word for path, text in files.items() if path != CONFIG for word in re.findall(r"--[a-z][^\s\"]*", text)]
    flags = [word for word in spoken if not word.startswith(("--bootstrap", "--kubeconfig", "--config"))]
    said = ["mark=/etc/kubernetes/kubelet.conf", "mark=/etc/kubernetes/manifests", *(["running=1"] if runs else [])]
    said += [
        _told(flag.removeprefix("--")) for flag in flags if re.match(r"--(cgroup-d|feature-g|node-l|container-r)", flag)
    ]
    said += ["binary=/usr/bin/kubelet", f"config={CONFIG}"]
    if CONFIG in files:
        said += ["settings=read", *_settings(files[CONFIG])]
    command = " ".join(
        ("/usr/bin/kubelet", *KUBECONFIG.split(), *([f"--config={CONFIG}"] if CONFIG in files else []), *flags)
    )
    sections = (
        ("kubernetes", "".join(f"{line}\n" for line in said) + more),
        ("kubelet:version", f"Kubernetes v{version}\n"),
    )
    return Engine(
        units=(("kubelet.service", 1400, "kubelet", command),) if runs else (),
        stopped=() if runs else (("kubelet.service", STOPPED),),
        sections=sections,
        files=tuple(files.items()),
    )


def _told(flag: str) -> str:
    name, _, value = flag.partition("=")
    return f"flag={value}" if name == "cgroup-driver" else f"arg={flag}"


def _settings(text: str) -> list[str]:
    """The keys and gates that the probe takes from KubeletConfiguration, a key a line."""
    gates = [f"gate={key}={value}" for key, value in re.findall(r"^  (\w+): (true|false)$", text, re.MULTILINE)]
    return [
        *gates,
        *(
            "=".join(pair)
            for pair in re.findall(r"^(cgroupDriver|failSwapOn|failCgroupV1): (\w+)$", text, re.MULTILINE)
        ),
    ]


# What an upgrade of the kubelet asks for: no swap, and a hierarchy of cgroups, which was v1 in the days of dockershim.
NO_SWAP = (("system", "swaps=read\n"),)
V1_CGROUPS, V2_CGROUPS = ("cgroup=v1",), ("cgroup=v2",)


def _of_docker(
    slug: str, title: str, system: System, model: GpuModel, docker: str, one: Engine, *options: str
) -> Recipe:
    return Recipe(
        slug, title, system, (model,), docker=docker, engine=one, options=options,
        identity=V1_CGROUPS, sections=NO_SWAP,
    )  # fmt: skip


def _of_containerd(slug: str, title: str, system: System, model: GpuModel, containerd: str, one: Engine) -> Recipe:
    version, plugin = (3, V3) if containerd.startswith("2.") else (2, V2)
    config = SYSTEMD.format(version=version, plugin=plugin)
    return Recipe(
        slug, title, system, (model,), containerd=containerd, containerd_config=config, engine=one,
        identity=V2_CGROUPS, sections=NO_SWAP,
    )  # fmt: skip


EKS, GROUP = "/etc/kubernetes/kubelet/config.json", "--node-labels=eks.amazonaws.com/nodegroup=gpu"
NODEADM = """{
  "kind": "KubeletConfiguration",
  "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "cgroupDriver": "systemd"
}
"""
ALONE = ("--only", "kubernetes")
SINCE_111 = f"{HEAD}cgroupDriver: systemd\n"
KUBELETS: tuple[Recipe, ...] = (
    _of_docker(
        "centos7-kubelet18-v100", "kubeadm 1.8: GPUs are the alpha resource, behind a gate", CENTOS7, V100, "17.03.2",
        kubelet("1.8.15", {UNIT: BEFORE_FILES}), *ALONE,
    ),
    _of_docker(
        "centos7-kubelet110-p100", "kubeadm 1.10 with docker: plugin and alpha resource", CENTOS7, P100, "17.03.2",
        kubelet("1.10.13", {UNIT: BEFORE_FILES, RED_HATS: "KUBELET_EXTRA_ARGS=\n"}), *ALONE,
    ),
    _of_docker(
        "centos7-kubelet115-t4", "upgraded to 1.15 with flags of 1.10: the kubelet ends", CENTOS7, T4, "18.09.9",
        kubelet(
            "1.15.12",
            {
                PACKAGED: unit(RED_HATS), CONFIG: SINCE_111, FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--network-plugin=cni"\n',
                RED_HATS: "# GPUs\nKUBELET_EXTRA_ARGS=--allow-privileged=true "
                "--feature-gates=Accelerators=true,CPUManager=true\n",
            },
            runs=False,
        ),
    ),
    _of_docker(
        "ubuntu2004-kubelet120-t4", "kubeadm 1.20 with docker", UBUNTU2004, T4, "19.03.15",
        kubelet(
            "1.20.15",
            {
                UNIT: unit(DEBIANS), FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--network-plugin=cni"\n',
                CONFIG: f"{SINCE_111}featureGates:\n  DevicePlugins: true\n",
            },
        ),
    ),
    _of_docker(
        "ubuntu2004-kubelet123-a100", "kubeadm 1.23, the last with dockershim", UBUNTU2004, A100, "20.10.24",
        kubelet(
            "1.23.17",
            {
                UNIT: unit(DEBIANS), CONFIG: f"{SINCE_111}featureGates:\n  CSIMigration: true\n",
                FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--network-plugin=cni '
                '--pod-infra-container-image=registry.k8s.io/pause:3.6"\n',
            },
        ),
    ),
    _of_containerd(
        "ubuntu2204-kubelet130-l4", "kubeadm 1.30 with containerd 1.7", UBUNTU2204, L4, "1.7.28",
        kubelet(
            "1.30.14",
            {
                PACKAGED: unit(DEBIANS), CONFIG: f"{SINCE_111}featureGates:\n  CPUManager: true\n",
                FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock '
                '--pod-infra-container-image=registry.k8s.io/pause:3.9"\n',
            },
        ),
    ),
    _of_containerd(
        "ubuntu2404-kubelet135-h200", "kubeadm 1.35 with containerd 2.1", UBUNTU2404, H200, "2.1.9",
        kubelet("1.35.4", {PACKAGED: unit(DEBIANS), CONFIG: SINCE_111, FLAGS_ENV: 'KUBELET_KUBEADM_ARGS=""\n'}),
    ),
    _of_containerd(
        "ubuntu2404-kubelet137-h200", "kubeadm 1.37 with containerd 2.3", UBUNTU2404, H200, "2.3.4",
        kubelet("1.37.0", {PACKAGED: unit(DEBIANS), CONFIG: SINCE_111, FLAGS_ENV: 'KUBELET_KUBEADM_ARGS=""\n'}),
    ),
    _of_containerd(
        "ubuntu2204-kubelet133-old-gate-l4", "upgraded to 1.33 with a gate that it does not know: the kubelet ends",
        UBUNTU2204, L4, "1.7.28",
        kubelet(
            "1.33.7",
            {PACKAGED: unit(DEBIANS), CONFIG: f"{SINCE_111}featureGates:\n  # pinned cores\n  CPUManager: true\n"},
            runs=False,
        ),
    ),
    _of_containerd(
        "amazon2023-eks134-a10", "a node of Amazon EKS 1.34, by nodeadm", AMAZON2023, A10, "2.1.4",
        Engine(
            units=(
                ("kubelet.service", 1400, "kubelet", f"/usr/bin/kubelet --config={EKS} --config-dir={EKS}.d {GROUP}"),
            ),
            sections=(
                ("kubernetes", f"cloud=eks\nrunning=1\nbinary=/usr/bin/kubelet\nconfig={EKS}\nconfig-dir={EKS}.d\n"
                 f"arg={GROUP[2:]}\nsettings=read\ncgroupDriver=systemd\n"),
                ("kubelet:version", "Kubernetes v1.34.2-eks-113cf36\n"),
            ),
            files=((EKS, NODEADM),),
        ),
    ),
)  # fmt: skip
