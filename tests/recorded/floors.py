"""Constructed hosts whose versions are known to be vulnerable, ended, or at odds with each other."""

from __future__ import annotations

from tests.recorded.kubelets import CONFIG, HEAD, PACKAGED, RED_HATS, kubelet, unit
from tests.recorded.nouns import Driver, Engine, GpuModel, Recipe, debian, enterprise, ubuntu

DEBIAN12 = debian("12", "bookworm", "6.1.0-41-amd64")
UBUNTU2404 = ubuntu("24.04", "noble", "6.8.0-51-generic")
CONTAINERD_PID = 1100  # as construct.py has it
L4 = GpuModel("27b8", "AD104GL [L4]", subsystem="10de:16ee", bar1_gib=32)
OPEN_SET = (
    "nvidia-open",
    "nvidia-kernel-open-dkms",
    "nvidia-driver-cuda",
    "libcuda1",
    "libnvidia-ml1",
    "nvidia-persistenced",
)
TOOLKIT_SET = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
CURRENT = Driver("595.91.07", "open", OPEN_SET)
TOOLKIT_120 = tuple(f"{name}=1.20.0-1" for name in TOOLKIT_SET)
TOOLKIT_119 = tuple(f"{name}=1.19.0-1" for name in TOOLKIT_SET)

K0S_MANAGED = '# k0s_managed=true\nversion = 2\nimports = [\n\t"/run/k0s/containerd-cri.toml",\n]\n'
K0S_DROP_IN = """# containerd's GPU runtime, added by gpunode
version = 2

[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
CRIO_DROP_IN = """[crio]
  [crio.runtime]
    [crio.runtime.runtimes]
      [crio.runtime.runtimes.nvidia]
        runtime_path = "/usr/bin/nvidia-container-runtime"
        runtime_type = "oci"
"""

FLOORS = (
    Recipe(
        "debian12-toolkit-cve",
        "the container toolkit has a known CVE: it is upgraded",
        DEBIAN12,
        (L4,),
        docker="28.5.2",
        driver=CURRENT,
        toolkit="1.19.0",
        packages=TOOLKIT_119,
    ),
    Recipe(
        "debian12-toolkit-cve-held",
        "the container toolkit has a known CVE, and an admin pinned it: it is kept, with the reason",
        DEBIAN12,
        (L4,),
        docker="28.5.2",
        driver=CURRENT,
        toolkit="1.19.0",
        packages=TOOLKIT_119,
        held=TOOLKIT_SET,
    ),
    Recipe(
        "debian12-driver-cve",
        "the driver has a known CVE: it is upgraded in its branch",
        DEBIAN12,
        (L4,),
        docker="28.5.2",
        driver=Driver("595.58.03", "open", OPEN_SET),
        toolkit="1.20.0",
        packages=TOOLKIT_120,
    ),
    Recipe(
        "debian12-driver-cve-held",
        "the driver has a known CVE, and an admin pinned it: it is kept, with the reason",
        DEBIAN12,
        (L4,),
        docker="28.5.2",
        driver=Driver("580.126.09", "open", OPEN_SET),
        toolkit="1.20.0",
        packages=TOOLKIT_120,
        held=OPEN_SET,
    ),
    Recipe(
        "ubuntu2404-driver-cve-archive",
        "the driver has a known CVE, and Ubuntu's own archive provides it: what upgrades it is named",
        UBUNTU2404,
        (L4,),
        docker="28.5.2",
        driver=Driver(
            "580.126.09",
            "open",
            ("nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server", "libnvidia-compute-580-server"),
        ),
        toolkit="1.20.0",
        packages=TOOLKIT_120,
        secure_boot=True,
    ),
    Recipe(
        "debian12-containerd21",
        "containerd 2.1, which its project does not mend any more, with a runc that has a known way out of a container",
        DEBIAN12,
        (L4,),
        containerd="2.1.9",
        containerd_config="version = 3\n",
        engine=Engine(sections=((f"containerd:{CONTAINERD_PID}:runc", "runc version 1.3.2\n"),)),
        driver=CURRENT,
        toolkit="1.20.0",
        packages=TOOLKIT_120,
    ),
    Recipe(
        "rocky8-kubelet135",
        "cgroup v1 with a kubelet that does not start there",
        enterprise("rocky", "Rocky Linux", "8.10", "4.18.0-553.82.1.el8_10.x86_64"),
        (L4,),
        containerd="2.3.4",
        containerd_config="version = 3\n",
        engine=kubelet("1.35.4", {PACKAGED: unit(RED_HATS), CONFIG: f"{HEAD}cgroupDriver: systemd\n"}, runs=False),
        packages=("kubelet=1.35.4-150500.1.1",),
        identity=("cgroup=v1",),
    ),
    Recipe(
        "debian12-driver-kernel70",
        "a driver is asked for that does not build on this kernel: refused",
        debian("12", "bookworm", "7.0.9-amd64"),
        (L4,),
        docker="28.5.2",
        options=("--driver", "580.126.18"),
    ),
    Recipe(
        "debian12-k0s136-old-drop-in",
        "a k0s worker that exits since its upgrade to 1.36, on the drop-in that an earlier gpunode wrote",
        DEBIAN12,
        (L4,),
        engine=Engine(
            stopped=(("k0sworker.service", "/usr/local/bin/k0s worker --token-file=/etc/k0s/token"),),
            sections=(("k0s:version", "v1.36.1+k0s.0\n"), ("kubernetes", "mark=/etc/k0s\n")),
            files=(
                ("/etc/k0s/containerd.toml", K0S_MANAGED),
                ("/etc/k0s/containerd.d/nvidia.toml", K0S_DROP_IN),
            ),
            tools=("/usr/local/bin/k0s",),
        ),
        driver=CURRENT,
        toolkit="1.20.0",
        packages=TOOLKIT_120,
    ),
    Recipe(
        "el9-crio-misplaced-drop-in",
        "CRI-O with the drop-in of nvidia-ctk 1.19.0 in a directory that it does not read",
        enterprise("rhel", "Red Hat Enterprise Linux", "9.6", "5.14.0-570.58.1.el9_6.x86_64"),
        (L4,),
        engine=Engine(
            units=(("crio.service", 900, "crio", "/usr/bin/crio"),),
            sections=(
                ("crio", "config=/etc/crio/crio.conf\nfolder=/etc/crio/crio.conf.d\nsocket=/var/run/crio/crio.sock\n"),
                ("crio:version", "crio version 1.36.3\n"),
                ("crio:config", '[crio.runtime]\ndefault_runtime = "crun"\n[crio.runtime.runtimes.crun]\n'),
            ),
            files=(("/etc/crio/conf.d/99-nvidia.toml", CRIO_DROP_IN),),
            tools=("/usr/bin/crio",),
        ),
    ),
)
