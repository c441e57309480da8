"""The machine around the GPUs: memory, swap, disks, limits and networks. None is "not known" here as everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.values import dataclass

UNLIMITED = 1 << 63  # bytes: what "unlimited" of /proc/PID/limits is taken for


@dataclass(frozen=True)
class FileSystem:
    """The file system that a path is on, by statfs(2); paths of one file system have the same values."""

    path: str  # "/var/lib/docker"
    size_bytes: int
    free_bytes: int  # for others than root
    inodes: int  # 0: it has no fixed number of them (btrfs)
    inodes_free: int


@dataclass(frozen=True)
class RdmaPort:
    """One port below /sys/class/infiniband. The words are the kernel's."""

    device: str  # "mlx5_0"
    port: int
    address: str | None = None  # "0000:1a:00.0": the PCI function of the device
    layer: str | None = None  # "InfiniBand" | "Ethernet"
    state: str | None = None  # "ACTIVE" | "INIT" | "DOWN"
    physical: str | None = None  # "LinkUp" | "Polling" | "Disabled"
    rate: str | None = None  # "400 Gb/sec (4X NDR)"
    board: str | None = None  # "MT_0000000838"; None: a device of software
    downed: int | None = None  # how often the link went down since the driver loaded
    interface: str | None = None  # the network interface of an Ethernet port, "ens1np0"
    mtu: int | None = None  # of that interface

    @property
    def name(self) -> str:
        return f"{self.device}/{self.port}"


@dataclass(frozen=True)
class RdmaModule:
    """A loaded kernel module of the RDMA stack."""

    name: str  # "mlx5_core"
    version: str | None = None  # "24.10-2.1.8": modules that come with the kernel have none of their own
    srcversion: str | None = None
    taint: str = ""  # "OE"

    @property
    def foreign(self) -> bool:
        """It was built outside the kernel's tree (OFED, DOCA-Host)."""
        return "O" in self.taint


@dataclass(frozen=True)
class SetVariable:
    """A variable that a file sets for all logins or all services."""

    name: str  # "CUDA_VISIBLE_DEVICES"; its value is not read
    path: str  # "/etc/environment"
    line: int


@dataclass(frozen=True)
class ModuleOption:
    """An option of NVIDIA's module that modprobe.d sets, as it will be at the next load."""

    path: str  # of the file in force that sets it last
    key: str  # "DeviceFileMode", without NVreg_
    value: str  # as it is written, without quotes


@dataclass(frozen=True)
class ModprobeHelper:
    """/usr/bin/nvidia-modprobe, with which programs of ordinary users load modules and make device nodes."""

    mode: int  # permission bits, 0o4755
    uid: int
    gid: int

    @property
    def setuid(self) -> bool:
        """Whoever starts it runs it as root."""
        return bool(self.mode & 0o4000) and self.uid == 0

    @property
    def writable(self) -> bool:
        """Others than root may change it."""
        return self.uid != 0 or bool(self.mode & 0o002) or (bool(self.mode & 0o020) and self.gid != 0)


@dataclass(frozen=True)
class CudaToolkit:
    path: str  # "/usr/local/cuda-12.4"
    version: str | None = None  # "12.4.1", as its version.json has it
    nvcc: str | None = None  # "12.4.131"


@dataclass(frozen=True)
class NamedProxy:
    """A proxy that a file sets; of its value user and password are not read."""

    host: str  # "proxy.example:3128"
    path: str  # "/etc/apt/apt.conf.d/95proxy"
    line: int


@dataclass(frozen=True)
class Outbound:
    """What the host's way to the outside depends on, as its files have it."""

    proxies: tuple[NamedProxy, ...] = ()
    indirect: tuple[str, ...] = ()  # files of units that take variables from further files, which were not read
    unseen: tuple[str, ...] = ()  # files that only others may read
    resolv_conf: str = "present"  # "present" | "absent" | "dead": a link to what is not there
    name_server: bool = False  # it names one


@dataclass(frozen=True)
class SystemFacts:
    uptime_s: int | None = None
    memory_bytes: int | None = None  # MemTotal
    available_bytes: int | None = None  # MemAvailable
    swap: tuple[str, ...] | None = None  # devices and files that the kernel swaps to
    files_open: int | None = None
    files_max: int | None = None
    threads: int | None = None
    threads_max: int | None = None  # the lower of kernel.threads-max and kernel.pid_max
    lock_held_s: int | None = None  # how long the holder of the package manager's lock has run
    clock_set: bool | None = None  # systemd-timesyncd has set the clock since the boot; None: it does not run here
    initramfs: frozenset[str] | None = None  # kernels that have an initramfs of their own in /boot
    var_read_only: bool | None = None  # the file system that has /var is mounted so
    disks: tuple[FileSystem, ...] = ()
    rdma: tuple[RdmaPort, ...] = ()
    rdma_modules: tuple[RdmaModule, ...] | None = None  # None: not read
    # PCI address of a GPU -> "identity" | "DMA" | "DMA-FQ": how the IOMMU takes what it sends; no entry without one
    iommu: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # engine daemon -> bytes that it and what it starts may lock in memory; UNLIMITED
    memlock: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    variables: tuple[SetVariable, ...] | None = None  # of those that change what CUDA programs do; None: not read
    thp: str | None = None  # transparent huge pages: "always" | "madvise" | "never"; None: not known, or without them
    # governor -> how many of cpufreq's policies have it, of 64 at most; {}: there is no cpufreq; None: not read
    governors: Mapping[str, int] | None = None
    cuda: tuple[CudaToolkit, ...] | None = None  # toolkits of NVIDIA's own packages and installers; None: not read
    outbound: Outbound | None = None  # None: not read

    def disk(self, path: str) -> FileSystem | None:
        return next((disk for disk in self.disks if disk.path == path), None)
