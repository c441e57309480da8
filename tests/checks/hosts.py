"""A healthy host to break in one place, and the words for doing so."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from gpunode.facts.wire import file_facts
from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import (
    CliInfo,
    DeviceNode,
    DriverFacts,
    HostFacts,
    JournalFacts,
    KernelFacts,
    KernelTree,
    KubernetesFacts,
    OsFacts,
    PciDevice,
    RuntimeFacts,
    SecurityFacts,
    ServiceFacts,
    ToolkitFacts,
)
from gpunode.model.files import FileFacts, WrittenFile
from gpunode.model.gpu_health import (
    Clocks,
    GpuBoard,
    GpuHealth,
    GpuUse,
    LinkErrors,
    MemoryErrors,
    MemoryRepairs,
    NvLinks,
    PcieLink,
    PowerLimits,
    Temperatures,
)
from gpunode.model.initramfs import DracutFacts, InitramfsImage
from gpunode.model.kernel_log import AerCounters, KernelLog, KernelState
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.model.system import (
    UNLIMITED,
    FileSystem,
    ModprobeHelper,
    ModuleOption,
    Outbound,
    RdmaModule,
    RdmaPort,
    SystemFacts,
)
from gpunode.model.topology import Place, Topology

HEALTH = GpuHealth(
    ecc_pending="Enabled",
    errors=MemoryErrors(0, 0, 0, 0, False, False, False, False),
    repairs=MemoryRepairs(0, False, False, 0, 0, 0, 0, False),
    temperatures=Temperatures(28, 90, 59, -2, 32, 95),
    clocks=Clocks(
        "P0", {"gpu_idle": True, "hw_thermal_slowdown": False, "hw_power_brake_slowdown": False,
               "sw_thermal_slowdown": False}, 0, 0, 1980, 1980,
    ),
    power=PowerLimits(700.0, 700.0, 700.0),
    link=PcieLink(5, 5, 9, 0),
    use=GpuUse("Default", "Pass-Through", 100, 0, 0),
    board=GpuBoard("695-2G520-0280-001", "96.00.A5.00.03"),
)  # fmt: skip
TODAY = date(2026, 6, 1)  # before the ends of the engines here
V = "595.91.07"
KERNEL = "6.1.0-50-amd64"
LIB = "/usr/lib/x86_64-linux-gnu"
CTK = "/etc/nvidia-container-runtime/config.toml"
CDI = "/var/run/cdi/nvidia.yaml"
GPU = PciDevice(
    "0000:41:00.0", "10de", "2330", "0302", driver="nvidia", link_width=16, link_width_max=16, numa_node=0,
    runtime_status="active", config_head="de103023", bar1_bytes=1 << 37,
)  # fmt: skip
SEEN = SmiGpu(
    0, GPU.address, "H100", ecc_mode="Enabled", mig_mode="Disabled", mig_pending="Disabled", recovery="None",
    health=HEALTH,
    links=NvLinks(18, (), tuple(LinkErrors(n, kind, 0) for n in range(18) for kind in ("Replay", "Recovery", "CRC"))),
)  # fmt: skip
# The other seven of its board, which virtual machines have.
PASSED_ON = tuple(replace(GPU, address=f"0000:8{n}:00.0", driver="vfio-pci") for n in range(7))
SWITCH = PciDevice("0000:07:00.0", "10de", "22a3", "0680", driver="nvidia")
SWITCHES = tuple(replace(SWITCH, address=f"0000:0{n}:00.0") for n in range(4))
TREE = KernelTree(KERNEL, bootable=True, headers=True, nvidia_module="updates/dkms/nvidia.ko")
DAEMON_JSON = '{"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  options.BinaryName = "/usr/bin/nvidia-container-runtime"
"""
DOCKER_ENGINE = RuntimeFacts(
    "docker", "28.5.2", "/etc/docker/daemon.json", "docker.service", "/run/docker.sock", active=True,
    effective_default="nvidia", effective_source="docker /info", handlers=("nvidia", "runc"), live_restore=True,
    cdi=True, pid=900, started_at=1_795_000_100, socket_mode=0o660,
)  # fmt: skip
TOOLKIT = ToolkitFacts(
    "1.20.0", "/usr/bin/nvidia-container-runtime", True, "/usr/bin/nvidia-container-runtime-hook",
    (CDI,), ("nvidia.com/gpu=0",), hook_since=1_795_000_000, cli=CliInfo(0, V), hook_refused="",
)  # fmt: skip
CONTAINERD_ENGINE = RuntimeFacts(
    "containerd", "1.7.27", "/etc/containerd/config.toml", "containerd.service", "/run/containerd/containerd.sock",
    active=True, effective_default="nvidia", effective_source="CRI Status", handlers=("nvidia", "runc"),
    systemd_cgroup={"nvidia": True, "runc": True}, runc_version="1.3.3", cdi=True,
)  # fmt: skip
PORTS = tuple(
    RdmaPort(f"mlx5_{n}", 1, f"0000:{n}a:00.0", "InfiniBand", "ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)",
             "MT_0000000838", downed=0)
    for n in range(8)
)  # fmt: skip
ROOT = FileSystem("/", 1 << 40, 1 << 39, 1 << 26, 1 << 25)
SYSTEM = SystemFacts(
    uptime_s=90_000, memory_bytes=1 << 40, available_bytes=1 << 39, swap=(), files_open=2000, files_max=UNLIMITED,
    threads=900, threads_max=4_194_304, initramfs=frozenset({KERNEL}), var_read_only=False,
    disks=(ROOT, FileSystem("/boot", 1 << 30, 1 << 29, 65536, 65000), replace(ROOT, path="/var")), rdma=PORTS,
    rdma_modules=(RdmaModule("mlx5_core", None, "5A7A7A2C0E6F7E7B8C9D0E1"), RdmaModule("ib_core")),
    iommu={GPU.address: "identity"}, memlock={"dockerd": UNLIMITED}, variables=(),
    thp="madvise", governors={"performance": 64}, cuda=(), outbound=Outbound(name_server=True),
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
    return PackageFacts("apt", {n: PackageVersion(f"{v}-1") for n, v in names.items() if v}, sources=(source,),
                        auto_upgrade=False)  # fmt: skip


CTK_TOML = """[nvidia-container-cli]
#no-cgroups = false
ldconfig = "@/sbin/ldconfig"

[nvidia-container-runtime]
mode = "auto"
"""


def files(**texts: str | None) -> dict[str, FileFacts]:
    """The healthy host's files; `docker`, `containerd`, `ctk` and `cdi` replace one."""
    paths = {
        "docker": ("/etc/docker/daemon.json", DAEMON_JSON),
        "containerd": ("/etc/containerd/config.toml", CONTAINERD),
        "ctk": (CTK, CTK_TOML),
        "cdi": (CDI, f"kind: nvidia.com/gpu\nhostPath: {LIB}/libcuda.so.{V}\n"),
        "cdi2": ("/etc/cdi/nvidia.yaml", None),
    }
    return {path: _file(path, texts.get(key, text)) for key, (path, text) in paths.items()}


def _file(path: str, text: str | None) -> FileFacts:
    return file_facts(path, text) if text is not None else FileFacts(path)


MODE_OPTION = ModuleOption("/etc/modprobe.d/nvidia.conf", "DeviceFileMode", "0666")
READY = HostFacts(
    target="gpu01",
    hostname="gpu01",
    os=OsFacts("debian", "12"),
    kernel=KernelFacts(
        KERNEL, cmdline="root=/dev/sda1 quiet", compiler=12, trees=(TREE,), next_boot=KERNEL,
        modules=frozenset({"nvidia", "nvidia_uvm", "gdrdrv", "nvidia_fs"}), blacklisted=frozenset({"nouveau"}),
        options=(MODE_OPTION,),
        dracut=DracutFacts(frozenset({"nouveau", "nvidia"}), frozenset(), images=(InitramfsImage(KERNEL, "/boot/i"),)),
    ),
    root=True,
    cgroup="v2",
    pci=(GPU, *PASSED_ON, *SWITCHES),
    driver=DriverFacts(
        loaded=V, loaded_flavour="open", installed=V, installed_flavour="open", initstate="live", signer="DKMS key",
        params={"DeviceFileMode": "438", "EnableGpuFirmware": "18", "ExcludedGpus": ""}, gpus=(GPU.address,),
        smi=SmiFacts(0, driver_version=V, cuda_version="13.2", gpus=(SEEN,)),
        dkms=tuple(DkmsLine(name, V, KERNEL, "installed") for name in ("nvidia", "gdrdrv", "nvidia-fs")),
        stuck=(), mps=(),
        libraries={so: (f"{LIB}/{so[:-2]}.{V}",) for so in ("libcuda.so.1", "libnvidia-ml.so.1")},
        modprobe=ModprobeHelper(0o4755, 0, 0),
    ),
    devices=(
        DeviceNode("/dev/nvidia0", 195, 0, 0o666, True), DeviceNode("/dev/nvidiactl", 195, 255, 0o666, True),
        DeviceNode("/dev/nvidia-uvm", 511, 0, 0o666, True),
    ),
    uvm_major=511,
    toolkit=TOOLKIT,
    runtimes=(DOCKER_ENGINE, CONTAINERD_ENGINE),
    packages=packages(),
    security=SecurityFacts(secure_boot=True, uefi=True, selinux="Disabled"),
    services={
        "nvidia-cdi-refresh.path": ServiceFacts("loaded", "active", "waiting", "enabled"),
        "nvidia-fabricmanager.service": ServiceFacts("loaded", "active", "running", "enabled"),
        "kubelet.service": ServiceFacts("loaded", "active", "running", "enabled"),
        "docker.service": ServiceFacts("loaded", "active", "running", "enabled", wanted_by=("multi-user.target",)),
        "containerd.service": ServiceFacts("loaded", "active", "running", "enabled", wanted_by=("multi-user.target",)),
        "chrony.service": ServiceFacts("loaded", "active", "running", "enabled"),
    },
    system=SYSTEM,
    topology=Topology({GPU.address: Place(("0000:40:01.0",), 0)}),
    kubernetes=KubernetesFacts(kubelet=True, kubelet_cgroup_driver="systemd"),
    journal=JournalFacts(files={
        "/etc/docker/daemon.json": WrittenFile(
            file_facts("", DAEMON_JSON).sha256 or "", "absent", "docker.default", "20260521T151820Z-1.1"),
    }),
    kernel_state=KernelState(
        uptime_s=90_000, taint=12289, crashes=(), aer={GPU.address: AerCounters(3, 0, 0)}, memory_corrected=4,
        memory_uncorrected=0,
    ),
    files=files(),
)  # fmt: skip


def log(**events: Any) -> HostFacts:
    """The kernel's log of the healthy host says this."""
    return host(log=KernelLog(**events))


def kernel_state(**changes: Any) -> HostFacts:
    """Counters of the healthy host's kernel, changed."""
    assert READY.kernel_state
    return host(kernel_state=replace(READY.kernel_state, **changes))


def host(**changes: Any) -> HostFacts:
    return replace(READY, **changes)


def driver(**changes: Any) -> HostFacts:
    return replace(READY, driver=replace(READY.driver, **changes))


def smi(*gpus: SmiGpu, **changes: Any) -> HostFacts:
    """nvidia-smi lists these GPUs."""
    return driver(smi=replace(SmiFacts(0, driver_version=V, gpus=gpus), **changes))


def kernel(**changes: Any) -> HostFacts:
    return replace(READY, kernel=replace(READY.kernel, **changes))


def system(**changes: Any) -> HostFacts:
    return replace(READY, system=replace(SYSTEM, **changes))


def port(**changes: Any) -> HostFacts:
    """The first of its RDMA ports is another."""
    return system(rdma=(replace(PORTS[0], **changes), *PORTS[1:]))


# Two sockets, and below each two switches with two GPUs and an RDMA device for each.
PLACES = {
    device: Place((f"0000:{n}0:01.0", f"0000:{n}1:00.0", f"0000:{n}2:0{m}.0"), n // 2)
    for n in range(4)
    for m, device in enumerate((f"0000:{n}4:00.0", f"0000:{n}5:00.0", f"0000:{2 * n}a:00.0", f"0000:{2 * n + 1}a:00.0"))
}


def board(acs: int | None = 0, **changes: Place) -> HostFacts:
    """A node with eight GPUs whose switches have this ACS control register; `gpu3` and `mlx5_3` are somewhere else."""
    gpus = [address for address in PLACES if not address.endswith("a:00.0")]
    names = {**{f"gpu{n}": a for n, a in enumerate(gpus)}, **{port.device: port.address or "" for port in PORTS}}
    places = PLACES | {names[name]: place for name, place in changes.items()}
    ports = {place.bridges[2]: acs for place in places.values() if len(place.bridges) > 2}
    return host(pci=tuple(replace(GPU, address=a) for a in gpus), topology=Topology(places, ports))


def gcc(*versions: str) -> HostFacts:
    """The running kernel, built with gcc 12, has no module, and these gcc are here: the default one, gcc-12."""
    names = dict(zip(("gcc", "gcc-12"), versions, strict=False))
    there = {name: PackageVersion(version) for name, version in names.items()}
    bare = kernel(trees=(replace(TREE, nvidia_module=None),))
    return replace(bare, packages=replace(packages(), installed={**packages().installed, **there}))


def enforcing(*log: str, allowed: bool | None = False) -> HostFacts:
    """SELinux enforces, and the kernel's log has these lines."""
    return replace(driver(kernel_log=log), security=SecurityFacts(selinux="Enforcing", containers_may=allowed))


def licensed(state: str | None) -> HostFacts:
    """A guest whose GPU is a vGPU."""
    return replace(smi(seen("use", licence=state)), pci=(replace(GPU, vgpu="its PCI capability"),), platform="vgpu")


def instances(count: int, *minors: int) -> HostFacts:
    """The GPU has so many MIG instances, and /dev/nvidia-caps nodes of these minors."""
    nodes = tuple(DeviceNode(f"/dev/nvidia-caps/nvidia-cap{n}", 510, n, 0o444, True) for n in minors)
    apart = seen("use", replace(SEEN, mig_mode="Enabled", mig_pending="Enabled"), mig_devices=count)
    return replace(smi(apart), devices=(*READY.devices, *nodes))


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


def seen(part: str = "", gpu: SmiGpu = SEEN, /, **changes: Any) -> SmiGpu:
    """The healthy GPU with these changes in one part of its health ("errors"), or in itself."""
    if not part:
        return replace(gpu, **changes)
    health: Any = replace(gpu.health, **{part: replace(getattr(gpu.health, part), **changes)})
    return replace(gpu, health=health)
