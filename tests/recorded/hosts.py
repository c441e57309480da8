"""The constructed hosts of examples/hosts, each described in the few words in which it differs from the others."""

from __future__ import annotations

from tests.recorded.derivatives import DERIVATIVES
from tests.recorded.distributions import DISTRIBUTIONS
from tests.recorded.dra import DRA
from tests.recorded.engines import ENGINES
from tests.recorded.floors import FLOORS
from tests.recorded.guests import GUESTS
from tests.recorded.images import IMAGES
from tests.recorded.kubelets import KUBELETS
from tests.recorded.more_hosts import MORE
from tests.recorded.nodes import NODES
from tests.recorded.nouns import HGX_NVLINK5, GpuModel, Recipe, debian, enterprise, ubuntu
from tests.recorded.own_systems import OWN_SYSTEMS
from tests.recorded.sick import SICK
from tests.recorded.whole import WHOLE

DEBIAN12 = debian("12", "bookworm", "6.1.0-41-amd64")
DEBIAN13 = debian("13", "trixie", "6.12.57+deb13-amd64")
UBUNTU2204 = ubuntu("22.04", "jammy", "5.15.0-161-generic")
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-51-generic", "6.8.0-52-generic")
UBUNTU2604 = ubuntu("26.04", "resolute", "7.0.0-12-generic")
EL8 = enterprise("rocky", "Rocky Linux", "8.10", "4.18.0-553.82.1.el8_10.x86_64")
EL9 = enterprise("almalinux", "AlmaLinux", "9.6", "5.14.0-570.58.1.el9_6.x86_64")
EL10 = enterprise("rhel", "Red Hat Enterprise Linux", "10.1", "6.12.0-124.8.1.el10_1.x86_64")

T4 = GpuModel("1eb8", "TU104GL [Tesla T4]", subsystem="10de:12a2")
K80 = GpuModel("102d", "GK210GL [Tesla K80]", 2, "10de:106c")
P100 = GpuModel("15f8", "GP100GL [Tesla P100 PCIe 16GB]", subsystem="10de:118f", bar1_gib=16)
V100 = GpuModel("1db4", "GV100GL [Tesla V100 PCIe 16GB]", 2, "10de:1214", bar1_gib=16)
A10 = GpuModel("2236", "GA102GL [A10]", 4, "10de:1482", bar1_gib=32)
A100 = GpuModel("20b2", "GA100 [A100 SXM4 80GB]", 8, "10de:1463", bar1_gib=128)
A100_SWITCH = GpuModel("1af1", "GA100 [A100 NVSwitch]", 6, "10de:1463", "0x068000")
L4 = GpuModel("27b8", "AD104GL [L4]", subsystem="10de:16ee", bar1_gib=32)
L40S = GpuModel("26b9", "AD102GL [L40S]", 2, "10de:1851", bar1_gib=64)
RTX4090 = GpuModel(
    "2684", "AD102 [GeForce RTX 4090]", subsystem="1043:88e2", class_code="0x030000", driver="nouveau", bar1_gib=32
)
RTX4090_AUDIO = GpuModel("22ba", "AD102 High Definition Audio Controller", subsystem="1043:88e2", class_code="0x040300")
H100 = GpuModel("2330", "GH100 [H100 SXM5 80GB]", 8, "10de:16c1", bar1_gib=128)
H100_PCIE = GpuModel("2331", "GH100 [H100 PCIe]", subsystem="10de:1626", bar1_gib=128)
H100_SWITCH = GpuModel("22a3", "GH100 [H100 NVSwitch]", 4, "10de:1796", "0x068000")
H200 = GpuModel("2335", "GH100 [H200 SXM 141GB]", 2, "10de:18be", bar1_gib=256)
B200 = GpuModel("2901", "GB100 [B200]", 8, "10de:1999", driver="nova_core", bar1_gib=256)

DAEMON_JSON = """{
    "log-driver": "json-file",
    "log-opts": {"max-size": "50m", "max-file": "3"},
    "live-restore": true
}
"""
CONTAINERD_V2 = """# Managed by the platform team.
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.example/pause:3.9"
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
          SystemdCgroup = true  # the kubelet's driver is systemd
"""
CONTAINERD_DEBIAN = """version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
"""
CONTAINERD_V3 = (
    CONTAINERD_V2.replace("version = 2", "version = 3")
    .replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
    .replace('    sandbox_image = "registry.example/pause:3.9"\n', "")
)

RECIPES = (
    Recipe("ubuntu2204-t4", "one T4 in a VM with docker", UBUNTU2204, (T4,), docker="28.2.2"),
    Recipe(
        "ubuntu2204-hgx-a100",
        "8 × A100 SXM4 with 6 NVSwitch, docker and a kubeadm node's containerd 1.7",
        UBUNTU2204,
        (A100, A100_SWITCH),
        docker="28.2.2",
        daemon_json=DAEMON_JSON,
        containerd="1.7.28",
        containerd_config=CONTAINERD_V2,
        kubelet=True,
    ),
    Recipe(
        "ubuntu2404-hgx-h100",
        "8 × H100 SXM5 with 4 NVSwitch, docker, containerd 2.1 and a newer kernel waiting for the next boot",
        UBUNTU2404,
        (H100, H100_SWITCH),
        docker="28.5.2",
        daemon_json=DAEMON_JSON,
        containerd="2.1.9",
        containerd_config=CONTAINERD_V3,
        kubelet=True,
    ),
    Recipe(
        "ubuntu2604-b200",
        "8 × B200 held by nova_core",
        UBUNTU2604,
        (B200,),
        containerd="2.2.1",
        containerd_config=CONTAINERD_V3,
        kubelet=True,
        modules=("nova_core", "nova_drm"),
        marks=HGX_NVLINK5,
    ),
    Recipe(
        "debian12-l4",
        "one L4, docker 20.10 as Debian ships it",
        DEBIAN12,
        (L4,),
        docker="20.10.24",
        containerd="1.6.20",
    ),
    Recipe(
        "debian13-rtx4090",
        "a workstation: RTX 4090 held by nouveau, containerd 1.7",
        DEBIAN13,
        (RTX4090, RTX4090_AUDIO),
        containerd="1.7.24",
        containerd_config=CONTAINERD_DEBIAN,
        modules=("nouveau",),
    ),
    Recipe("el8-v100", "2 × V100 on Rocky Linux 8: proprietary 580", EL8, (V100,), docker="26.1.3"),
    Recipe(
        "el9-a10",
        "4 × A10 on AlmaLinux 9",
        EL9,
        (A10,),
        containerd="1.7.28",
        containerd_config=CONTAINERD_V2,
        kubelet=True,
    ),
    Recipe(
        "el10-h200",
        "2 × H200 on RHEL 10, whose key NVIDIA pins by its file's checksum",
        EL10,
        (H200,),
        containerd="2.1.4",
        containerd_config=CONTAINERD_V3,
    ),
    Recipe("ubuntu2204-k80", "a K80: refused, with the reason", UBUNTU2204, (K80,), docker="28.2.2"),
    Recipe(
        "debian12-p100-h100",
        "P100 and H100 in one box: one driver for both",
        DEBIAN12,
        (P100, H100_PCIE),
        docker="20.10.24",
        containerd="1.6.20",
    ),
    Recipe(
        "ubuntu2404-v100-b200",
        "V100 and B200 in one box: no driver fits both",
        UBUNTU2404,
        (V100, B200),
        docker="28.5.2",
    ),
    Recipe(
        "ubuntu2404-secureboot-l40s",
        "2 × L40S with Secure Boot on",
        UBUNTU2404,
        (L40S,),
        docker="28.5.2",
        secure_boot=True,
    ),
    Recipe(
        "ubuntu2404-archive-570-l40s",
        "branch 570 of Ubuntu's archive asked for, whose packages install 580: refused, and 580 named",
        UBUNTU2404,
        (L40S,),
        docker="28.5.2",
        secure_boot=True,
        options=("--driver", "570"),
    ),
    Recipe(
        "debian13-secureboot-l4",
        "an L4 with Secure Boot on: a key of this machine's own",
        DEBIAN13,
        (L4,),
        docker="26.1.5",
        secure_boot=True,
    ),
    Recipe("debian12-no-gpu", "no NVIDIA GPU", DEBIAN12, (), docker="20.10.24", containerd="1.6.20"),
    *GUESTS,
    *MORE,
    *ENGINES,
    *FLOORS,
    *OWN_SYSTEMS,
    *SICK,
    *NODES,
    *DRA,
    *KUBELETS,
    *DISTRIBUTIONS,
    *WHOLE,
    *DERIVATIVES,
    *IMAGES,
)
