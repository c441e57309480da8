"""A healthy host to break in one place, and the words for doing so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpunode.model.facts import (
    DeviceNode,
    DkmsLine,
    DracutFacts,
    DriverFacts,
    FileFacts,
    HostFacts,
    InitramfsImage,
    KernelFacts,
    KernelTree,
    KubernetesFacts,
    OsFacts,
    PackageFacts,
    PackageVersion,
    PciDevice,
    RuntimeFacts,
    SecurityFacts,
    ServiceFacts,
    SmiFacts,
    SmiGpu,
    ToolkitFacts,
)

V = "595.91.07"
KERNEL = "6.1.0-50-amd64"
LIB = "/usr/lib/x86_64-linux-gnu"
CTK = "/etc/nvidia-container-runtime/config.toml"
CDI = "/var/run/cdi/nvidia.yaml"
GPU = PciDevice(
    "0000:41:00.0", "10de", "2330", "0302", driver="nvidia", link_width=16, link_width_max=16, numa_node=0,
    runtime_status="active", config_head="de103023", bar1_bytes=1 << 37,
)  # fmt: skip
SWITCH = PciDevice("0000:07:00.0", "10de", "22a3", "0680", driver="nvidia")
SWITCHES = tuple(replace(SWITCH, address=f"0000:0{n}:00.0") for n in range(4))
TREE = KernelTree(KERNEL, bootable=True, headers=True, nvidia_module="updates/dkms/nvidia.ko")
DAEMON_JSON = '{"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
"""
DOCKER_ENGINE = RuntimeFacts(
    "docker", "28.5.2", "/etc/docker/daemon.json", "docker.service", "/run/docker.sock", active=True,
    effective_default="nvidia", effective_source="docker /info", handlers=("nvidia", "runc"), live_restore=True,
    pid=900, started_at=1_795_000_100,
)  # fmt: skip
TOOLKIT = ToolkitFacts(
    "1.20.0", "/usr/bin/nvidia-container-runtime", True, "/usr/bin/nvidia-container-runtime-hook",
    (CDI,), ("nvidia.com/gpu=0",), hook_since=1_795_000_000,
)  # fmt: skip
CONTAINERD_ENGINE = RuntimeFacts(
    "containerd", "1.7.27", "/etc/containerd/config.toml", "containerd.service", "/run/containerd/containerd.sock",
    active=True, effective_default="nvidia", effective_source="CRI Status", handlers=("nvidia", "runc"),
    systemd_cgroup={"nvidia": True, "runc": True},
)  # fmt: skip
PACKAGES = {
    "nvidia-open": V, "nvidia-kernel-open-dkms": V, "nvidia-driver-cuda": V, "nvidia-persistenced": "525.85.05",
    "nvidia-container-toolkit": "1.20.0", "nvidia-container-toolkit-base": "1.20.0",
    "libnvidia-container-tools": "1.20.0", "libnvidia-container1": "1.20.0",
    "linux-image-amd64": "6.1.0", "linux-headers-amd64": "6.1.0",
}  # fmt: skip


def packages(**versions: str) -> PackageFacts:
    """PACKAGES with changes; __ in a name stands for a hyphen."""
    names = PACKAGES | {name.replace("__", "-"): version for name, version in versions.items()}
    source = FileFacts(
        "/etc/apt/sources.list.d/nvidia.list", "deb https://nvidia.github.io/libnvidia-container/stable/deb/amd64/ /\n"
    )
    return PackageFacts("apt", {n: PackageVersion(f"{v}-1") for n, v in names.items() if v}, sources=(source,))


def files(**texts: str | None) -> dict[str, FileFacts]:
    """The healthy host's files; `docker`, `containerd`, `ctk`, `cdi` and `modprobe` replace one."""
    paths = {
        "docker": ("/etc/docker/daemon.json", DAEMON_JSON),
        "containerd": ("/etc/containerd/config.toml", CONTAINERD),
        "ctk": (CTK, '#no-cgroups = false\nldconfig = "@/sbin/ldconfig"\nmode = "auto"\n'),
        "cdi": (CDI, f"kind: nvidia.com/gpu\nhostPath: {LIB}/libcuda.so.{V}\n"),
        "cdi2": ("/etc/cdi/nvidia.yaml", None),
        "modprobe": ("/etc/modprobe.d/nvidia.conf", "options nvidia NVreg_DeviceFileMode=0666\n"),
    }
    return {path: FileFacts(path, texts.get(key, text)) for key, (path, text) in paths.items()}


READY = HostFacts(
    target="gpu01",
    hostname="gpu01",
    os=OsFacts("debian", "12"),
    kernel=KernelFacts(
        KERNEL, cmdline="root=/dev/sda1 quiet", trees=(TREE,), next_boot=KERNEL,
        modules=frozenset({"nvidia", "nvidia_uvm"}), blacklisted=frozenset({"nouveau"}),
        dracut=DracutFacts(frozenset({"nouveau", "nvidia"}), frozenset(), images=(InitramfsImage(KERNEL, "/boot/i"),)),
    ),
    root=True,
    pci=(GPU, *SWITCHES),
    driver=DriverFacts(
        loaded=V, loaded_flavour="open", installed=V, installed_flavour="open", initstate="live", signer="DKMS key",
        params={"DeviceFileMode": "438"}, gpus=(GPU.address,),
        smi=SmiFacts(0, driver_version=V, gpus=(SmiGpu(0, GPU.address, "H100"),)),
        dkms=(DkmsLine("nvidia", V, KERNEL, "installed"),),
        libraries={so: (f"{LIB}/{so[:-2]}.{V}",) for so in ("libcuda.so.1", "libnvidia-ml.so.1")},
    ),
    devices=(
        DeviceNode("/dev/nvidia0", 195, 0, 0o666, True), DeviceNode("/dev/nvidiactl", 195, 255, 0o666, True),
        DeviceNode("/dev/nvidia-uvm", 511, 0, 0o666, True),
    ),
    uvm_major=511,
    toolkit=TOOLKIT,
    runtimes=(DOCKER_ENGINE, CONTAINERD_ENGINE),
    packages=packages(),
    security=SecurityFacts(secure_boot=True, uefi=True),
    services={
        "nvidia-cdi-refresh.path": ServiceFacts("loaded", "active", "waiting", "enabled"),
        "nvidia-fabricmanager.service": ServiceFacts("loaded", "active", "running", "enabled"),
    },
    kubernetes=KubernetesFacts(kubelet=True, kubelet_cgroup_driver="systemd"),
    files=files(),
)  # fmt: skip


def host(**changes: Any) -> HostFacts:
    return replace(READY, **changes)


def driver(**changes: Any) -> HostFacts:
    return replace(READY, driver=replace(READY.driver, **changes))


def kernel(**changes: Any) -> HostFacts:
    return replace(READY, kernel=replace(READY.kernel, **changes))


def toolkit(**changes: Any) -> HostFacts:
    return replace(READY, toolkit=replace(READY.toolkit, **changes))


def gpu(**changes: Any) -> HostFacts:
    return replace(READY, pci=(replace(GPU, **changes),))


def node(path: str, **changes: Any) -> HostFacts:
    return replace(READY, devices=tuple(replace(d, **changes) if d.path == path else d for d in READY.devices))


def docker(**changes: Any) -> HostFacts:
    return replace(READY, runtimes=(replace(DOCKER_ENGINE, **changes), CONTAINERD_ENGINE))


def containerd(**changes: Any) -> HostFacts:
    return replace(READY, runtimes=(DOCKER_ENGINE, replace(CONTAINERD_ENGINE, **changes)))
