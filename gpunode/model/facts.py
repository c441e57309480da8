"""What was observed on a host: values only. None (or a line in `unread`) means "not known", never "fine"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Literal

from gpunode.model.active import ActiveFacts
from gpunode.model.connection import Connection
from gpunode.model.dkms import DkmsLine
from gpunode.model.driver import ModuleFlavour
from gpunode.model.files import FileFacts, WrittenFile
from gpunode.model.initramfs import DracutFacts
from gpunode.model.kernel_log import KernelLog, KernelState
from gpunode.model.kubernetes import DevicePlugins, KubeletSettings, NodeFacts
from gpunode.model.packages import PackageFacts
from gpunode.model.smi import SmiFacts
from gpunode.model.system import ModprobeHelper, ModuleOption, SystemFacts
from gpunode.model.topology import Topology
from gpunode.values import dataclass


@dataclass(frozen=True)
class OsFacts:
    id: str  # os-release ID: "ubuntu", "debian", "rocky"
    version_id: str  # "24.04", "12"; "" on rolling releases
    id_like: tuple[str, ...] = ()
    codename: str = ""  # VERSION_CODENAME: "bookworm"
    pretty_name: str = ""
    machine: str = "x86_64"  # uname -m


@dataclass(frozen=True)
class KernelTree:
    """One installed kernel: a directory in /lib/modules that has a kernel image to boot, or is running."""

    release: str  # "6.8.0-52-generic"
    bootable: bool  # /boot holds its vmlinuz
    headers: bool  # /lib/modules/RELEASE/build resolves to a directory with a Makefile
    nvidia_module: str | None  # path of nvidia.ko* below /lib/modules/RELEASE, None when there is none


@dataclass(frozen=True)
class KernelFacts:
    release: str  # uname -r; of an image that is being built the one that boots, "" where it has none
    boot_id: str | None = None
    cmdline: str = ""
    trees: tuple[KernelTree, ...] = ()
    modules: frozenset[str] = frozenset()  # loaded: names in /sys/module with an initstate (underscores)
    blacklisted: frozenset[str] = frozenset()  # modules that modprobe.d or the command line blacklist
    barred: frozenset[str] = frozenset()  # of them those that modprobe does not load by their names either
    options: tuple[ModuleOption, ...] = ()  # of NVIDIA's module, one for each key
    next_boot: str | None = None  # release that boots next, as far as it is known
    initramfs_tool: str | None = None  # "update-initramfs" | "dracut" | "mkinitcpio"
    dracut: DracutFacts | None = None  # None: dracut is not installed, or the recording does not say
    compiler: int | None = None  # major version of the gcc that built the running kernel; None: another compiler
    reboot_required: str | None = None  # what asks for one: contents of /run/reboot-required.pkgs


@dataclass(frozen=True)
class PciDevice:
    """One PCI function made by NVIDIA (and InfiniBand functions, for the NVLink 5 rule)."""

    address: str  # "0000:41:00.0"
    vendor: str  # four lowercase hex digits, no 0x
    device: str
    class_code: str  # "0302": base class and subclass
    subsystem: str | None = None  # "10de:16c1"
    driver: str | None = None  # bound kernel driver; None when unbound
    name: str | None = None  # lspci's name where lspci is present
    link_width: int | None = None
    link_width_max: int | None = None
    link_speed: str | None = None  # "32.0 GT/s PCIe"
    link_speed_max: str | None = None
    numa_node: int | None = None  # -1 when the firmware does not say
    runtime_status: str | None = None  # "active" | "suspended"
    config_head: str | None = None  # first four config bytes as hex, "de103023"; "ffffffff" = off the bus
    bar1_bytes: int | None = None  # size of the second BAR (VRAM aperture)
    # evidence that it is a share of a GPU, 'its PCI capability 0x09 is signed "VF"'; None: a whole one, or not known
    vgpu: str | None = None


@dataclass(frozen=True)
class StuckProcess:
    """A process that holds GPUs, or did, and was found in the same state twice."""

    pid: int
    command: str
    state: str  # "D": it waits in the kernel, the same wait both times; "Z": it has ended and is still there
    seconds: int  # between the two looks
    parent: int | None = None  # of "Z": the parent that holds GPUs; None: a thread of its own still does


@dataclass(frozen=True)
class MpsProcess:
    """A control daemon or a server of MPS, which the kernel calls the same."""

    pid: int
    uid: int | None
    container: bool  # it runs in one


@dataclass(frozen=True)
class DriverFacts:
    loaded: str | None = None  # /sys/module/nvidia/version
    loaded_flavour: ModuleFlavour | None = None  # from /proc/driver/nvidia/version
    installed: str | None = None  # modinfo -F version
    installed_flavour: ModuleFlavour | None = None  # from modinfo -F license
    signer: str | None = None  # modinfo -F signer
    initstate: str | None = None  # "live"
    refcnt: int | None = None
    params: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # /proc/driver/nvidia/params
    gpus: tuple[str, ...] = ()  # PCI addresses in /proc/driver/nvidia/gpus
    smi: SmiFacts | None = None  # None: nvidia-smi was not run (the reason is in HostFacts.unread["smi"])
    dkms: tuple[DkmsLine, ...] = ()  # of all modules, the driver's or not
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    # soname -> real paths in loader order, from ldconfig -p: {"libcuda.so.1": ("/usr/lib/.../libcuda.so.595.91.07",)}
    runfile: bool = False  # /usr/bin/nvidia-uninstall is there: a .run installer was used
    # A driver container owns the driver: its root is at /run/nvidia/driver, or the GPU Operator's pod of it is here.
    container: bool = False
    image: str | None = None  # "/etc/dgx-release": the mark of an image that ships its own driver
    switch_management: tuple[str, ...] = ()  # PCI addresses of functions whose VPD has SW_MNG: NVLink 5 switches
    umad: bool | None = None  # the running kernel has a module ib_umad; None: not known, or no such functions
    # lines of this boot about GPUs, module signatures, machine checks and hung tasks; HostFacts.log has what they say
    kernel_log: tuple[str, ...] = ()
    modprobe: ModprobeHelper | Literal["absent"] | None = None  # None: not known
    busy: tuple[str, ...] = ()  # "pid command" of processes that hold /dev/nvidia*
    busy_uids: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  # pid -> its real uid
    stuck: tuple[StuckProcess, ...] | None = None  # None: it was not looked
    mps: tuple[MpsProcess, ...] | None = None  # None: it was not looked


@dataclass(frozen=True)
class DeviceNode:
    path: str  # "/dev/nvidia0"
    major: int
    minor: int
    mode: int
    char_link: bool  # /dev/char/MAJOR:MINOR is there


@dataclass(frozen=True)
class CliInfo:
    """What `nvidia-container-cli info` answered. code 124: not within its limit; 127: it is not installed."""

    code: int
    driver_version: str | None = None  # "NVRM version: 595.91.07"
    message: str = ""  # first line of what it printed when code is not 0


@dataclass(frozen=True)
class ToolkitFacts:
    version: str | None = None  # nvidia-ctk --version
    runtime_path: str | None = None  # nvidia-container-runtime in PATH
    runtime_executable: bool = False
    hook_path: str | None = None  # nvidia-container-runtime-hook
    cdi_specs: tuple[str, ...] = ()  # files in /etc/cdi and /var/run/cdi
    cdi_devices: tuple[str, ...] = ()  # "nvidia.com/gpu=0"
    # "containerd": who logged that the toolkit's hook met a read-only /etc/nvidia; "": nobody; None: not looked for
    hook_refused: str | None = None
    operator: str | None = None  # "/usr/local/nvidia/toolkit": the GPU Operator's toolkit, which configures the engines
    cli: CliInfo | None = None  # what nvidia-container-cli says of the driver; None: it was not asked
    hook_since: int | None = None  # since when the hook is there, upgrades aside, in seconds since 1970
    low_level: tuple[str, ...] | None = None  # "/usr/bin/runc": runc and crun in PATH; None: not looked for

    @property
    def lost(self) -> str | None:
        """The first of its programs that is not there, where it is installed otherwise; None where all of them are."""
        if self.version is None:
            return None
        if self.runtime_path is None:
            return "nvidia-container-runtime"
        return None if self.hook_path else "nvidia-container-runtime-hook"


@dataclass(frozen=True)
class RuntimeFacts:
    """One container engine on this host, as its running daemon reports it where it answered."""

    name: str  # one of engines.registry.ENGINES
    version: str | None  # "28.5.2"
    config_path: str  # the file the running daemon really uses
    unit: str  # systemd unit, "docker.service"; "" for an engine without a daemon (podman)
    socket: str  # path of the API socket; "" without a daemon
    binary: str | None = None  # executable of the running daemon or of the unit's ExecStart
    active: bool = False  # the daemon runs and its unit is active
    effective_default: str | None = None  # as the running daemon reports it; None when it did not answer
    effective_source: str = ""  # how: "docker /info", "CRI Status", "config dump (weaker)"
    handlers: tuple[str, ...] = ()  # runtimes of the running daemon
    systemd_cgroup: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))  # handler -> setting
    cdi: bool | None = None  # CDI enabled in the running daemon
    live_restore: bool | None = None  # docker
    swarm: bool = False  # docker: a node of a swarm, where live-restore does not work
    containers_running: int | None = None
    running: tuple[str, ...] = ()  # names of the containers that run, the first twenty at most (docker)
    imports: tuple[str, ...] = ()  # files that were merged in, in order (containerd)
    merged_config: str | None = None  # `containerd config dump`, where the daemon's binary answered
    cri_error: str | None = None  # why CRI does not answer though the daemon runs
    flags: tuple[str, ...] = ()  # the daemon's command line after the binary
    snap: bool = False  # installed as a snap: its files are not where packages put them
    missing_binaries: tuple[str, ...] = ()  # paths that engines' files or the toolkit's name and the disk does not have
    user: str | None = None  # whose rootless dockerd it is; None: it runs as root
    owner: str = ""  # "UID:GID" of that user; "": root
    sees_toolkit: bool = True  # its /etc has nvidia-container-runtime; a rootless one copies the names when it starts
    runc_version: str | None = None  # of the runc that it starts, "1.3.3" (containerd)
    embedded_in: str | None = None  # version of the Kubernetes distribution, "1.31.4+k3s1" (k3s, rke2, k0s)
    init: str = "systemd"  # HostFacts.init: what restarts it
    pid: int | None = None  # of the running daemon
    started_at: int | None = None  # when that process started, in seconds since 1970
    distribution_flags: tuple[str, ...] = ()  # behind the binary in its unit's ExecStart: "server", "--disable", ...
    distribution_config: str | None = None  # what K3S_CONFIG_FILE or RKE2_CONFIG_FILE names; "URL" for what is no path
    others: tuple[tuple[int, str], ...] = ()  # pid and unit of further daemons of root (docker)
    socket_mode: int | None = None  # permission bits of its socket, 0o660; None: it was not asked

    @property
    def nvidia_by_default(self) -> bool:
        """NVIDIA's runtime starts what names none, under its usual name or another: AKS' nvidia-container-runtime."""
        return (self.effective_default or "").startswith("nvidia")

    @property
    def label(self) -> str:
        """Its name among all engines of one host, which may run several containerds: "containerd@containerd-gpu"."""
        unit = self.unit.removesuffix(".service")
        if self.user:
            return f"{self.name}@{self.user}"
        return f"{self.name}@{unit}" if self.name == "containerd" and unit not in ("", self.name) else self.name


@dataclass(frozen=True)
class SecurityFacts:
    secure_boot: bool | None = None  # None: not a UEFI machine or not known
    uefi: bool | None = None
    lockdown: str | None = None  # "none" | "integrity" | "confidentiality"
    selinux: str | None = None  # "Enforcing" | "Permissive" | "Disabled"
    containers_may: bool | None = None  # SELinux' boolean container_use_devices; None: there is no such boolean
    mok_pending: bool = False  # a key waits for MokManager
    mok_key: str | None = None  # as DKMS's framework.conf names it; "?": it is not understood; None: it names none
    mok_certificate: str | None = None  # likewise
    mok_enrolled: bool | None = None  # the key DKMS signs with is enrolled; None: not known, or no such key

    @property
    def locked_down(self) -> bool:
        """The kernel refuses modules that no key it knows has signed. Secure Boot alone does not say so: shim may have
        been told not to validate (mokutil --disable-validation), and a kernel of one's own need not care.
        """
        return self.lockdown in ("integrity", "confidentiality")


RUNS = ("active", "activating", "reloading")  # ActiveState of a unit that systemd has started, or is about to


@dataclass(frozen=True)
class ServiceFacts:
    load: str = "not-found"  # LoadState
    active: str = "inactive"  # ActiveState
    sub: str = "dead"  # SubState
    enabled: str = ""  # UnitFileState
    main_pid: int | None = None
    restarts: int | None = None  # NRestarts
    dependents: tuple[str, ...] = ()  # units that systemd stops with it; (): none, or not known
    wanted_by: tuple[str, ...] | None = None  # units that systemd starts it with; None: not known

    @property
    def is_masked(self) -> bool:
        return self.enabled.startswith("masked") or self.load == "masked"


@dataclass(frozen=True)
class KubernetesFacts:
    kubelet: bool = False
    kubelet_cgroup_driver: str | None = None  # "systemd" | "cgroupfs", from the kubelet's config or flags
    distribution: str | None = None  # "kubeadm" | "k3s" | "rke2" | "eks" ...
    starts_on_cgroup_v1: bool = False  # failCgroupV1: false, in the kubelet's config or flags
    starts_with_swap: bool | None = None  # failSwapOn: false, there too; None: its config was not read
    joined: bool = False  # it has a kubeconfig, or a distribution's directory: packages alone bring /etc/kubernetes
    running: bool = False  # its process, or that of the distribution that has it, is there
    version: str | None = None  # "1.31.4"
    settings: KubeletSettings | None = None  # None: not known
    flags: tuple[str, ...] | None = None  # names on the command line of a kubelet that runs by itself; None: not known
    device_plugins: DevicePlugins | None = None  # None: not known
    kubeconfig: str | None = (
        None  # the kubelet's own, "/etc/kubernetes/kubelet.conf"; None: there is none, or not known
    )
    node_name: str | None = None  # by which that asks for its node, "gpu07"; None: it was not asked
    node: NodeFacts | None = None  # None: not known; HostFacts.unread["node"] has why


@dataclass(frozen=True)
class IgnoredProcess:
    """A process that is named like a container daemon and not this host's: nothing of it was run or read."""

    pid: int
    comm: str  # "containerd"
    uid: int
    why: str  # "it belongs to uid 65534"


@dataclass(frozen=True)
class FailedStep:
    """The step at which the last setup failed."""

    step: str  # "driver.install"
    run: str  # "20261121T151820Z-6283.1"
    error: str  # "download the driver ended with code 100: E: Failed to fetch ..."


@dataclass(frozen=True)
class JournalFacts:
    """What gpunode itself left on this host: work begun and never closed."""

    open_steps: tuple[str, ...] = ()  # step ids that a killed run left open
    transactions: tuple[str, ...] = ()  # detached units (package transactions) that still run
    packages: frozenset[str] = frozenset()  # that its commands installed, removed or repaired
    defaults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # engine whose default runtime gpunode set, and no undo restored -> the one from before
    pinned: frozenset[str] = frozenset()  # of PackageFacts.held: what gpunode itself pinned
    files: Mapping[str, WrittenFile] = field(
        default_factory=lambda: MappingProxyType({})
    )  # path -> what it wrote there
    failed: FailedStep | None = None  # None: the last run did not fail, or it was an undo


@dataclass(frozen=True)
class HostFacts:
    target: str  # as the user named the host
    hostname: str
    os: OsFacts
    kernel: KernelFacts
    root: bool  # the probe ran as root
    virtualization: str | None = None  # hypervisor vendor, "container", or None on bare metal
    # "ostree" | "transactional-update" | "read-only": an image replaces /usr as a whole; None: packages can change it
    image_based: str | None = None
    # "wsl" | "l4t" (Jetson) | "vgpu" (guest with a share of a GPU) | "container" (one that runs): its driver comes with
    # it; None: an ordinary machine
    platform: str | None = None
    cgroup: str | None = None  # "v2" | "v1" | "hybrid" (v1, and v2 below it): what /sys/fs/cgroup is; None: not known
    product: str | None = None  # what the firmware (DMI) calls the machine: "PowerEdge XE9680"; None: not known
    user_namespace: bool | None = None  # of a container: its root is not the machine's; None: not known, or a machine
    init: str = "systemd"  # "systemd" | "openrc" | "sysv" | "chroot" (an image that is being built) | "none"
    init_scripts: tuple[str, ...] = ()  # of engines, in /etc/init.d: "docker"
    pci: tuple[PciDevice, ...] = ()  # in bus order
    driver: DriverFacts = DriverFacts()
    devices: tuple[DeviceNode, ...] = ()
    uvm_major: int | None = None  # major of nvidia-uvm in /proc/devices
    toolkit: ToolkitFacts = ToolkitFacts()
    runtimes: tuple[RuntimeFacts, ...] = ()
    packages: PackageFacts = field(default_factory=PackageFacts)
    security: SecurityFacts = SecurityFacts()
    services: Mapping[str, ServiceFacts] = field(default_factory=lambda: MappingProxyType({}))
    kubernetes: KubernetesFacts = KubernetesFacts()
    journal: JournalFacts = JournalFacts()
    log: KernelLog = field(
        default_factory=KernelLog
    )  # what the kernel's log says; empty as well where it was not read (`unread`)
    kernel_state: KernelState | None = None  # None: the probe did not read it
    system: SystemFacts | None = None  # None: the recording is from before it was read, or it is an image
    topology: Topology | None = None  # None: the recording is from before it was read, or it is an image
    ignored: tuple[IgnoredProcess, ...] = ()
    active: ActiveFacts | None = None  # what tests that were asked for showed; None: none was
    connection: Connection | None = None  # None: it is this machine, or a recording
    files: Mapping[str, FileFacts] = field(default_factory=lambda: MappingProxyType({}))
    unread: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # section -> why
    stream_sha256: str = ""

    @property
    def gpus(self) -> tuple[PciDevice, ...]:
        """NVIDIA display (0300) and 3D (0302) controllers; audio, USB and bridges are other functions."""
        return tuple(d for d in self.pci if d.vendor == NVIDIA_VENDOR and d.class_code in GPU_CLASSES)

    @property
    def own_gpus(self) -> tuple[PciDevice, ...]:
        """Those that this host uses itself; those bound to vfio-pci (passthrough) are virtual machines'."""
        return tuple(gpu for gpu in self.gpus if gpu.driver != "vfio-pci")

    @property
    def misread(self) -> Mapping[str, str]:
        """section -> why, of `unread`: what came and could not be understood. It says nothing good of the host."""
        return {name: why for name, why in self.unread.items() if why.startswith(NOT_UNDERSTOOD)}

    def file(self, path: str) -> FileFacts:
        """The file at `path` as the probe saw it; absent when the probe did not list it."""
        return self.files.get(path, FileFacts(path))

    def runtime(self, name: str) -> RuntimeFacts | None:
        """The first engine of that kind."""
        return next((r for r in self.runtimes if r.name == name), None)

    def labelled(self, label: str) -> RuntimeFacts | None:
        """The one engine of that label."""
        return next((r for r in self.runtimes if r.label == label), None)


NOT_UNDERSTOOD = "not understood: "
NVIDIA_VENDOR = "10de"
# nvidia.ko binds 0300, 0302 and 0680 (open-gpu-kernel-modules, nv-pci-table.c); 0680 is NVSwitch.
GPU_CLASSES = ("0300", "0302")
