"""Constructed hosts for the rest of the catalog: every distribution row, every architecture, drivers of any origin."""

from __future__ import annotations

from dataclasses import replace

from tests.recorded.nouns import (
    HGX_NVLINK5,
    TRUST,
    Driver,
    Engine,
    GpuModel,
    Recipe,
    System,
    debian,
    enterprise,
    os_release,
    rpm_system,
    ubuntu,
)

UBUNTU2004 = ubuntu("20.04", "focal", "5.15.0-139-generic")
UBUNTU2204 = ubuntu("22.04", "jammy", "5.15.0-161-generic")
UBUNTU2204_HWE = replace(
    ubuntu("22.04", "jammy", "6.8.0-87-generic"),
    kernel_packages=(
        "linux-image-6.8.0-87-generic=6.8.0-87.88~22.04.1",
        "linux-image-generic-hwe-22.04=6.8.0-87.88~22.04.1",
    ),
)
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-51-generic")
UBUNTU2404_ARM = replace(
    ubuntu("24.04", "noble", "6.8.0-1041-nvidia-64k"),
    kernel_packages=("linux-image-6.8.0-1041-nvidia-64k=6.8.0-1041.44", "linux-image-nvidia-64k=6.8.0-1041.44"),
    machine="aarch64",
)
DGX_OS7 = replace(
    ubuntu("24.04", "noble", "6.14.0-1013-nvidia"),
    kernel_packages=("linux-image-6.14.0-1013-nvidia=6.14.0-1013.13", "linux-image-nvidia-hwe-24.04=6.14.0-1013.13"),
    machine="aarch64",
)
DEBIAN11 = debian("11", "bullseye", "5.10.0-36-amd64")
DEBIAN12 = debian("12", "bookworm", "6.1.0-41-amd64")
PROXMOX8 = replace(
    debian("12", "bookworm", "6.8.12-9-pve"),
    kernel_packages=(
        "proxmox-kernel-6.8.12-9-pve-signed=6.8.12-9",
        "proxmox-kernel-6.8=6.8.12-9",
        "proxmox-default-kernel=1.1.0",
    ),
)
DEBIAN_SID = replace(
    debian("", "forky", "6.17.8+deb14-amd64"),
    os_release=os_release("Debian GNU/Linux forky/sid", ID="debian", VERSION_CODENAME="forky"),
)
RHEL8 = enterprise("rhel", "Red Hat Enterprise Linux", "8.10", "4.18.0-553.82.1.el8_10.x86_64")
RHEL9 = enterprise("rhel", "Red Hat Enterprise Linux", "9.6", "5.14.0-570.58.1.el9_6.x86_64")
RHEL9_64K = replace(
    enterprise("rhel", "Red Hat Enterprise Linux", "9.6", "5.14.0-570.58.1.el9_6.aarch64+64k"),
    kernel_packages=("kernel-64k-core=5.14.0-570.58.1.el9_6",),
    machine="aarch64",
)
ROCKY9 = enterprise("rocky", "Rocky Linux", "9.6", "5.14.0-570.58.1.el9_6.x86_64")
ROCKY10 = enterprise("rocky", "Rocky Linux", "10.1", "6.12.0-124.8.1.el10_1.x86_64")
ALMA8 = enterprise("almalinux", "AlmaLinux", "8.10", "4.18.0-553.82.1.el8_10.x86_64")
ALMA10 = enterprise("almalinux", "AlmaLinux", "10.1", "6.12.0-124.8.1.el10_1.x86_64")
STREAM9 = enterprise("centos", "CentOS Stream", "9", "5.14.0-639.el9.x86_64")
STREAM10 = enterprise("centos", "CentOS Stream", "10", "6.12.0-159.el10.x86_64")
ORACLE8 = enterprise("ol", "Oracle Linux Server", "8.10", "4.18.0-553.82.1.el8_10.x86_64")
ORACLE9 = enterprise("ol", "Oracle Linux Server", "9.6", "5.14.0-570.58.1.0.1.el9_6.x86_64")
ORACLE9_UEK = replace(
    enterprise("ol", "Oracle Linux Server", "9.6", "6.12.0-100.28.2.2.el9uek.x86_64"),
    kernel_packages=("kernel-uek-core=6.12.0-100.28.2.2.el9uek", "kernel-core=5.14.0-570.58.1.0.1.el9_6", "gcc=11.5.0"),
)
ORACLE10 = enterprise("ol", "Oracle Linux Server", "10.0", "6.12.0-55.43.1.0.1.el10_0.x86_64")
CENTOS7 = rpm_system("centos", "CentOS Linux", "7", "3.10.0-1160.119.1.el7.x86_64", "yum", "kernel")
FEDORA42 = rpm_system("fedora", "Fedora Linux", "42", "6.17.8-200.fc42.x86_64", "dnf5")
FEDORA43 = rpm_system("fedora", "Fedora Linux", "43", "6.17.8-300.fc43.x86_64", "dnf5")
FEDORA44 = rpm_system("fedora", "Fedora Linux", "44", "6.19.4-300.fc44.x86_64", "dnf5")
FEDORA44_ARM = rpm_system("fedora", "Fedora Linux", "44", "6.19.4-300.fc44.aarch64", "dnf5", machine="aarch64")
AMAZON2023 = rpm_system("amzn", "Amazon Linux", "2023", "6.12.53-69.119.amzn2023.x86_64", "dnf", "kernel6.12")
AMAZON2 = rpm_system("amzn", "Amazon Linux", "2", "5.10.245-241.976.amzn2.x86_64", "yum", "kernel")
SLES15 = rpm_system(
    "sles", "SUSE Linux Enterprise Server", "15.7", "6.4.0-150700.53.22-default", "zypper", "kernel-default"
)
SLES16 = rpm_system(
    "sles", "SUSE Linux Enterprise Server", "16.0", "6.12.0-160000.7-default", "zypper", "kernel-default"
)
SLES15_SP5 = rpm_system(
    "sles", "SUSE Linux Enterprise Server", "15.5", "5.14.21-150500.55.136-default", "zypper", "kernel-default"
)
LEAP155 = rpm_system(
    "opensuse-leap", "openSUSE Leap", "15.5", "5.14.21-150500.55.88-default", "zypper", "kernel-default"
)
LEAP15 = rpm_system("opensuse-leap", "openSUSE Leap", "15.6", "6.4.0-150600.23.78-default", "zypper", "kernel-default")
LEAP16 = rpm_system("opensuse-leap", "openSUSE Leap", "16.0", "6.12.0-160000.7-default", "zypper", "kernel-default")
AZURE3 = rpm_system("azurelinux", "Microsoft Azure Linux", "3.0", "6.6.112.1-2.azl3.x86_64", "tdnf", "kernel")
KYLIN10 = rpm_system("kylin", "Kylin Linux Advanced Server", "V10", "4.19.90-89.11.v2401.ky10.x86_64", "dnf")
KYLIN11 = rpm_system("kylin", "Kylin Linux Advanced Server", "V11", "6.6.0-32.7.v2505.ky11.x86_64", "dnf")
OPENEULER = rpm_system("openEuler", "openEuler", "24.03", "6.6.0-72.0.0.76.oe2403.x86_64", "dnf")
ARCH = System(
    os_release("Arch Linux", ID="arch", BUILD_ID="rolling"),
    "6.17.8-arch1-1",
    "pacman",
    ("linux=6.17.8.arch1-1",),
    "mkinitcpio",
)
OPERATORS_TOOLKIT = Engine(sections=(("toolkit", "operator=/usr/local/nvidia/toolkit\n"),))

T4 = GpuModel("1eb8", "TU104GL [Tesla T4]", subsystem="10de:12a2")
K80 = GpuModel("102d", "GK210GL [Tesla K80]", 2, "10de:106c")
M2070 = GpuModel("06d2", "GF100GL [Tesla M2070]", subsystem="10de:0842")
M40 = GpuModel("17fd", "GM200GL [Tesla M40]", 2, "10de:1173")
P40 = GpuModel("1b38", "GP102GL [Tesla P40]", 4, "10de:11d9", bar1_gib=32)
GTX1080TI = GpuModel(
    "1b06", "GP102 [GeForce GTX 1080 Ti]", subsystem="1043:85e4", class_code="0x030000", driver="nouveau"
)
V100 = GpuModel("1db6", "GV100GL [Tesla V100 PCIe 32GB]", 4, "10de:124a", bar1_gib=32)
V100S = GpuModel("1df6", "GV100GL [Tesla V100S PCIe 32GB]", 2, "10de:13d6", bar1_gib=32)
A30 = GpuModel("20b7", "GA100GL [A30 PCIe]", 2, "10de:1532", bar1_gib=32)
A100 = GpuModel("20b5", "GA100 [A100 PCIe 80GB]", 4, "10de:1533", bar1_gib=128)
A4000 = GpuModel("24b0", "GA104GL [RTX A4000]", 2, "10de:14ad", class_code="0x030000", bar1_gib=16)
L4 = GpuModel("27b8", "AD104GL [L4]", 2, "10de:16ee", bar1_gib=32)
L40S = GpuModel("26b9", "AD102GL [L40S]", 4, "10de:1851", bar1_gib=64)
RTX4090 = GpuModel(
    "2684", "AD102 [GeForce RTX 4090]", subsystem="1043:88e2", class_code="0x030000", driver="nouveau", bar1_gib=32
)
H100 = GpuModel("2330", "GH100 [H100 SXM5 80GB]", 8, "10de:16c1", bar1_gib=128)
H100_PCIE = GpuModel("2331", "GH100 [H100 PCIe]", 2, "10de:1626", bar1_gib=128)
H100_NVL = GpuModel("2321", "GH100 [H100L 94GB]", 2, "10de:1839", bar1_gib=128)
H200 = GpuModel("2335", "GH100 [H200 SXM 141GB]", 8, "10de:18be", bar1_gib=256)
SWITCH = GpuModel("22a3", "GH100 [H100 NVSwitch]", 4, "10de:1796", "0x068000")
GB10 = GpuModel("2e12", "GB20B [GB10]", subsystem="10de:21ec", driver="nvidia", class_code="0x030000")
GH200 = GpuModel("2342", "GH100 [GH200 120GB / 480GB]", subsystem="10de:16eb", bar1_gib=128)
B200 = GpuModel("2901", "GB100 [B200]", 8, "10de:1999", bar1_gib=256)
GB200 = GpuModel("2941", "GB100 [HGX GB200]", 4, "10de:2046", bar1_gib=256)
RTX5090 = GpuModel(
    "2b85", "GB202 [GeForce RTX 5090]", subsystem="1043:89e3", class_code="0x030000", driver="nouveau", bar1_gib=32
)
RUBIN = GpuModel("3001", "GR100", 2, bar1_gib=512)
UNKNOWN_NEW = GpuModel("3a10", "Device", 4, bar1_gib=512)  # "Device" is lspci's name for what its list does not have
UNKNOWN_OLD = GpuModel("0abc", "Device", class_code="0x030000")
GTX295 = GpuModel("05e0", "GT200b [GeForce GTX 295]", class_code="0x030000")

OPEN_SET = (
    "nvidia-open",
    "nvidia-kernel-open-dkms",
    "nvidia-driver-cuda",
    "libcuda1",
    "libnvidia-ml1",
    "nvidia-persistenced",
)
CUDA_LIST = "https://developer.download.nvidia.com/compute/cuda/repos"
TOOLKIT = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
ML_LIST = "https://developer.download.nvidia.com/compute/machine-learning/repos"
OLD_LISTS = (
    ("/etc/apt/sources.list.d/cuda.list", f"deb {CUDA_LIST}/ubuntu2204/x86_64/ /\n"),
    (
        "/etc/apt/sources.list.d/nvidia-ml.list",
        f"deb {ML_LIST}/ubuntu2204/x86_64 /\n",
    ),
    (
        "/etc/apt/sources.list.d/nvidia-docker.list",
        "deb https://nvidia.github.io/libnvidia-container/stable/ubuntu18.04/$(ARCH) /\n"
        "deb https://nvidia.github.io/nvidia-docker/ubuntu18.04/$(ARCH) /\n",
    ),
    (
        "/etc/apt/sources.list.d/libnvidia-container.list",
        f"deb [signed-by=/usr/share/keyrings/libnvidia-container.gpg] {TOOLKIT} /\n",
    ),
    (
        "/etc/apt/sources.list.d/nvidia-container-toolkit.list",
        f"deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] {TOOLKIT} /\n",
    ),
)

MAIN_ONLY = """
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""

MORE = (
    Recipe(
        "ubuntu2004-t4",
        "a T4 on Ubuntu 20.04, whose archive alone still has drivers",
        UBUNTU2004,
        (T4,),
        docker="24.0.7",
    ),
    Recipe(
        "debian11-t4", "a T4 on Debian 11: only the ended 470 branch is packaged", DEBIAN11, (T4,), docker="20.10.5"
    ),
    Recipe(
        "debian11-k80-470",
        "a K80 with its ended branch asked for",
        DEBIAN11,
        (K80,),
        docker="20.10.5",
        options=("--driver", "470"),
    ),
    Recipe("debian12-m40", "2 × M40: Maxwell gets 580, proprietary", DEBIAN12, (M40,), docker="20.10.24"),
    Recipe(
        "debian-sid-rtx5090",
        "RTX 5090 on Debian testing",
        DEBIAN_SID,
        (RTX5090,),
        docker="27.5.1",
        modules=("nouveau",),
    ),
    Recipe(
        "debian-forky-distro",
        "2 × L4 on Debian testing with its own archive asked for, which has proprietary modules only",
        DEBIAN_SID,
        (L4,),
        docker="27.5.1",
        options=("--driver-source", "distro"),
    ),
    Recipe(
        "debian-forky-distro-open",
        "2 × L4 on Debian testing with the open modules of its own archive asked for: it has none",
        DEBIAN_SID,
        (L4,),
        docker="27.5.1",
        options=("--driver-source", "distro", "--flavour", "open"),
    ),
    Recipe("rhel8-a100", "4 × A100 PCIe on RHEL 8", RHEL8, (A100,), docker="26.1.3"),
    Recipe("rhel9-hgx-h200", "8 × H200 with 4 NVSwitch on RHEL 9", RHEL9, (H200, SWITCH), containerd="2.1.4"),
    Recipe(
        "proxmox8-l4", "2 × L4 on Proxmox VE 8, for containers on the host itself", PROXMOX8, (L4,), docker="28.5.2"
    ),
    Recipe(
        "rhel9-64k-gh200", "a GH200 on RHEL 9 with the kernel of 64k pages", RHEL9_64K, (GH200,), containerd="2.1.4"
    ),
    Recipe(
        "rocky9-l40s",
        "4 × L40S on Rocky Linux 9, Secure Boot on: a key must be enrolled",
        ROCKY9,
        (L40S,),
        docker="28.5.2",
        secure_boot=True,
    ),
    Recipe(
        "rocky10-b200",
        "an HGX board with 8 × B200 on Rocky Linux 10",
        ROCKY10,
        (B200,),
        containerd="2.1.4",
        marks=HGX_NVLINK5,
    ),
    Recipe("alma8-p40", "4 × P40 on AlmaLinux 8: Pascal gets 580, proprietary", ALMA8, (P40,), docker="26.1.3"),
    Recipe("alma10-h100", "2 × H100 NVL on AlmaLinux 10", ALMA10, (H100_NVL,), docker="28.5.2"),
    Recipe("stream9-a30", "2 × A30 on CentOS Stream 9", STREAM9, (A30,), docker="28.5.2"),
    Recipe("stream10-l4", "2 × L4 on CentOS Stream 10", STREAM10, (L4,), docker="28.5.2"),
    Recipe("oracle8-v100s", "2 × V100S on Oracle Linux 8", ORACLE8, (V100S,), docker="26.1.3"),
    Recipe(
        "oracle9-a100",
        "4 × A100 on Oracle Linux 9, LTS branch asked for",
        ORACLE9,
        (A100,),
        docker="28.5.2",
        options=("--driver", "580"),
    ),
    Recipe(
        "oracle9-uek-a100",
        "4 × A100 on Oracle Linux 9 with its default kernel, UEK 8",
        ORACLE9_UEK,
        (A100,),
        docker="28.5.2",
    ),
    Recipe("oracle10-h100", "2 × H100 PCIe on Oracle Linux 10", ORACLE10, (H100_PCIE,), docker="28.5.2"),
    Recipe(
        "centos7-v100",
        "4 × V100 on CentOS 7: the last branch that was built for it",
        CENTOS7,
        (V100,),
        docker="20.10.24",
    ),
    Recipe(
        "fedora42-gtx1080ti",
        "a GTX 1080 Ti on Fedora 42",
        FEDORA42,
        (GTX1080TI,),
        docker="28.5.2",
        modules=("nouveau",),
    ),
    Recipe(
        "fedora43-rtx5090",
        "an RTX 5090 on Fedora 43",
        FEDORA43,
        (RTX5090,),
        docker="28.5.2",
        modules=("nouveau",),
        options=TRUST,
    ),
    Recipe("fedora44-rtx4090", "an RTX 4090 on Fedora 44", FEDORA44, (RTX4090,), docker="29.1.0", modules=("nouveau",)),
    Recipe(
        "fedora44-gh200", "a GH200 on Fedora 44: NVIDIA builds nothing for it", FEDORA44_ARM, (GH200,), docker="29.1.0"
    ),
    Recipe(
        "amazon2023-h100",
        "8 × H100 with 4 NVSwitch on Amazon Linux 2023",
        AMAZON2023,
        (H100, SWITCH),
        containerd="2.1.4",
    ),
    Recipe("amazon2-t4", "a T4 on Amazon Linux 2: refused, with the reason", AMAZON2, (T4,), docker="20.10.25"),
    Recipe(
        "sles15-a100",
        "4 × A100 on SLES 15: SUSE's signed module, Secure Boot on",
        SLES15,
        (A100,),
        docker="28.5.1",
        secure_boot=True,
    ),
    Recipe("sles15-v100", "4 × V100 on SLES 15: proprietary 580", SLES15, (V100,), docker="28.5.1"),
    Recipe("sles16-h100", "2 × H100 PCIe on SLES 16", SLES16, (H100_PCIE,), docker="28.5.1"),
    Recipe("sles15sp5-a30", "2 × A30 on SLES 15 SP5, whose archive has no G07", SLES15_SP5, (A30,), docker="24.0.7"),
    Recipe("leap155-l4", "2 × L4 on openSUSE Leap 15.5, whose archive has no G07", LEAP155, (L4,), docker="24.0.7"),
    Recipe("leap15-a4000", "2 × RTX A4000 on openSUSE Leap 15", LEAP15, (A4000,), docker="28.5.1"),
    Recipe("leap16-l4", "2 × L4 on openSUSE Leap 16", LEAP16, (L4,), docker="28.5.1"),
    Recipe("azure3-a100", "4 × A100 on Azure Linux 3", AZURE3, (A100,), containerd="2.0.0"),
    Recipe(
        "azure3-v100", "4 × V100 on Azure Linux 3: open modules only, so refused", AZURE3, (V100,), containerd="2.0.0"
    ),
    Recipe("kylin10-t4", "a T4 on Kylin V10", KYLIN10, (T4,), docker="24.0.7", options=TRUST),
    Recipe("kylin11-a100", "4 × A100 on Kylin V11", KYLIN11, (A100,), docker="26.1.3", options=TRUST),
    Recipe("openeuler-a100", "4 × A100 on openEuler: refused, with the reason", OPENEULER, (A100,), docker="26.1.3"),
    Recipe(
        "arch-rtx5090",
        "an RTX 5090 on Arch Linux, whose archive has one version only",
        ARCH,
        (RTX5090,),
        docker="29.1.0",
        modules=("nouveau",),
    ),
    Recipe(
        "arch-gtx1080ti",
        "a GTX 1080 Ti on Arch Linux: its archive has no driver for it any more",
        ARCH,
        (GTX1080TI,),
        docker="29.1.0",
    ),
    Recipe("ubuntu2204-m2070", "a Fermi GPU: refused, with the reason", UBUNTU2204, (M2070,), docker="28.2.2"),
    Recipe("ubuntu2404-rubin", "2 × Rubin, known by their id block only", UBUNTU2404, (RUBIN,), docker="28.5.2"),
    Recipe(
        "ubuntu2404-unknown-new", "4 GPUs that are newer than the catalog", UBUNTU2404, (UNKNOWN_NEW,), docker="28.5.2"
    ),
    Recipe(
        "ubuntu2204-unknown-old",
        "a GPU with an old id that the catalog does not know: refused, with the way on",
        UBUNTU2204,
        (UNKNOWN_OLD,),
        docker="28.2.2",
    ),
    Recipe(
        "ubuntu2204-gtx295", "a GPU of the Tesla architecture (2009): refused, with the reason", UBUNTU2204, (GTX295,)
    ),
    Recipe("ubuntu2404-gb200", "a GB200 tray: 4 GPUs on Grace", UBUNTU2404_ARM, (GB200,), containerd="2.1.9"),
    Recipe(
        "ubuntu2404-dgx-spark",
        "a DGX Spark (GB10) as DGX OS leaves it: its driver stays, toolkit and docker are set up",
        DGX_OS7,
        (GB10,),
        docker="28.5.2",
        driver=Driver("580.95.05", "open", ("nvidia-driver-580-open", "libnvidia-compute-580")),
        marks=("image=/etc/dgx-release",),
    ),
    Recipe(
        "ubuntu2404-gh200",
        "a GH200 in a cluster: open modules only, and the driver manages its memory",
        UBUNTU2404_ARM,
        (GH200,),
        containerd="2.1.9",
        kubelet=True,
    ),
    Recipe(
        "ubuntu2204-hwe-secureboot-a30",
        "Secure Boot on, and the newer kernel line of 22.04",
        UBUNTU2204_HWE,
        (A30,),
        docker="28.2.2",
        secure_boot=True,
    ),
    Recipe(
        "ubuntu2404-vfio-v100-b200",
        "4 × V100 bound to vfio-pci (passthrough) next to 8 × B200",
        UBUNTU2404,
        (replace(V100, driver="vfio-pci"), B200),
        containerd="2.1.9",
        marks=HGX_NVLINK5,
    ),
    Recipe(
        "ubuntu2404-hgx-b200-kept",
        "an HGX board with 8 × B200 whose driver works, and that has no fabric manager",
        UBUNTU2404,
        (B200,),
        docker="28.5.2",
        driver=Driver("595.91.07", "open", OPEN_SET),
        marks=HGX_NVLINK5,
    ),
    Recipe(
        "ubuntu2404-mig-a100",
        "4 × A100 that work, to be partitioned into MIG instances",
        UBUNTU2404,
        (A100,),
        docker="28.5.2",
        driver=Driver("595.91.07", "open", OPEN_SET),
        options=("--mig", "all=1g.10gb:7"),
    ),
    Recipe(
        "ubuntu2404-proprietary-b200",
        "proprietary modules asked for on Blackwell: refused",
        UBUNTU2404,
        (B200,),
        docker="28.5.2",
        options=("--flavour", "proprietary"),
    ),
    Recipe(
        "ubuntu2404-proprietary-620",
        "proprietary modules asked for from branch 620: refused",
        UBUNTU2404,
        (L4,),
        docker="28.5.2",
        options=("--driver", "620", "--flavour", "proprietary"),
    ),
    Recipe(
        "ubuntu2404-local",
        "packages from a signed directory on the host",
        UBUNTU2404,
        (L4,),
        docker="28.5.2",
        options=("--driver-source", "local", "--mirror", "/srv/nvidia", *TRUST),
    ),
    Recipe(
        "ubuntu2204-old-lists",
        "stale entries: nvidia-docker.list, a list for the retired key, two lists of one repository",
        UBUNTU2204,
        (T4,),
        docker="28.2.2",
        files=OLD_LISTS,
    ),
    Recipe(
        "ubuntu2404-cuda",
        "CUDA 13.0 next to the driver",
        UBUNTU2404,
        (L4,),
        docker="28.5.2",
        options=("--cuda", "13.0"),
    ),
    Recipe(
        "ubuntu2404-dgx",
        "DGX OS: its driver is not changed",
        UBUNTU2404,
        (H100, SWITCH),
        docker="28.5.2",
        driver=Driver("580.95.05", "open", ("nvidia-driver-580-server-open", "libnvidia-compute-580-server")),
        marks=("image=/etc/dgx-release",),
    ),
    Recipe(
        "ubuntu2404-dgx-595",
        "DGX OS asked for another branch: refused, with the commands to proceed",
        UBUNTU2404,
        (H100, SWITCH),
        docker="28.5.2",
        driver=Driver("580.95.05", "open", ("nvidia-driver-580-server-open", "libnvidia-compute-580-server")),
        marks=("image=/etc/dgx-release",),
        options=("--driver", "595"),
    ),
    Recipe(
        "debian12-runfile",
        "a driver from a .run file: not changed",
        DEBIAN12,
        (L4,),
        docker="20.10.24",
        driver=Driver("580.95.05", "open", ()),
        marks=("runfile=/usr/bin/nvidia-uninstall",),
    ),
    Recipe(
        "ubuntu2204-unknown-origin",
        "a driver that no package provides",
        UBUNTU2204,
        (T4,),
        docker="28.2.2",
        driver=Driver("570.148.08", "proprietary", ()),
        options=("--driver", "595"),
    ),
    Recipe(
        "ubuntu2204-gpu-operator",
        "the GPU Operator's driver container owns the driver",
        UBUNTU2204,
        (A100,),
        containerd="1.7.28",
        kubelet=True,
        marks=("container=/run/nvidia/driver",),
        engine=OPERATORS_TOOLKIT,
    ),
    Recipe(
        "ubuntu2404-operator-toolkit",
        "the GPU Operator with driver.enabled=false: its toolkit, and the driver is still to be installed",
        UBUNTU2404,
        (L40S,),
        containerd="1.7.28",
        kubelet=True,
        engine=OPERATORS_TOOLKIT,
    ),
    Recipe(
        "debian12-main-only",
        "a Debian that has main enabled only, and its own driver asked for",
        DEBIAN12,
        (L4,),
        docker="20.10.24",
        archives=MAIN_ONLY,
        options=("--driver-source", "distro"),
    ),
    Recipe(
        "debian12-downgrade",
        "595 is installed, 580 is asked for",
        DEBIAN12,
        (L4,),
        docker="20.10.24",
        driver=Driver("595.91.07", "open", OPEN_SET),
        options=("--driver", "580"),
    ),
    Recipe(
        "debian12-upgrade",
        "580 is installed, 595 is asked for",
        DEBIAN12,
        (L4,),
        docker="20.10.24",
        driver=Driver("580.178.04", "open", OPEN_SET),
        options=("--driver", "595"),
    ),
    Recipe(
        "rhel9-switch-flavour",
        "open modules are installed, proprietary ones are asked for",
        RHEL9,
        (L4,),
        docker="28.5.2",
        driver=Driver(
            "580.178.04", "open", ("nvidia-open", "kmod-nvidia-open-dkms", "nvidia-driver-cuda", "libnvidia-ml")
        ),
        options=("--driver", "580", "--flavour", "proprietary"),
    ),
    Recipe(
        "debian12-uninstall",
        "the driver is to be removed",
        DEBIAN12,
        (L4,),
        docker="20.10.24",
        driver=Driver("595.91.07", "open", OPEN_SET),
        options=("--driver", "none"),
    ),
    Recipe(
        "fedora44-silverblue-rtx4090",
        "Fedora Silverblue: rpm-ostree, /usr is an image's",
        FEDORA44,
        (RTX4090,),
        identity=("image_based=ostree",),
    ),
    Recipe(
        "stream10-bootc-image",
        "CentOS Stream as a bootc image, with driver and toolkit built into the image and docker to be set up",
        STREAM10,
        (L4,),
        docker="28.5.2",
        driver=Driver("595.91.07", "open", ("nvidia-open", "nvidia-driver-cuda", "libnvidia-ml")),
        identity=("image_based=ostree",),
        toolkit="1.20.0",
    ),
    Recipe(
        "microos-l4",
        "openSUSE MicroOS: a read-only root that transactional-update replaces",
        rpm_system("opensuse-microos", "openSUSE MicroOS", "20261118", "6.18.1-1-default", "zypper", "kernel-default"),
        (L4,),
        identity=("image_based=transactional-update",),
    ),
    Recipe(
        "ubuntu2404-wsl2",
        "WSL2 with docker: Windows has the driver, and there is no GPU on the bus",
        replace(ubuntu("24.04", "noble", "6.6.87.2-microsoft-standard-WSL2"), kernel_packages=()),
        (),
        docker="28.5.2",
        secure_boot=None,
        identity=("hypervisor=-", "platform=wsl"),
    ),
    Recipe(
        "ubuntu2204-jetson-orin",
        "a Jetson Orin with docker: its GPU is not on the PCI bus, and JetPack brings the driver",
        replace(ubuntu("22.04", "jammy", "5.15.148-tegra"), kernel_packages=(), machine="aarch64"),
        (),
        docker="28.5.2",
        secure_boot=None,
        identity=("platform=l4t",),
    ),
)
