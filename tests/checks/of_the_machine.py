"""Faults of the machine around the GPUs, and what keeps its checks from a verdict: rows of test_checks.py."""

from __future__ import annotations

from dataclasses import replace

from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import HostFacts, KubernetesFacts, OsFacts, PciDevice, SecurityFacts, ServiceFacts
from gpunode.model.kernel_log import KernelLog, LinkLosses
from gpunode.model.packages import AptArchive, PackageFacts
from gpunode.model.system import FileSystem, RdmaModule, SetVariable
from gpunode.model.topology import Place, Topology
from tests.checks import hosts as h

SET = frozenset({"nvidia-open", "nvidia-kernel-open-dkms", "nvidia-driver-cuda"})
AUTOMATIC = replace(h.packages(), auto_upgrade=True)
LOCKED = replace(h.packages(), lock_holder="243 (unattended-upgr)")
NO_TIME = {**h.READY.services, "chrony.service": ServiceFacts("loaded", "inactive", "dead", "disabled")}
TIMESYNCD = {"systemd-timesyncd.service": ServiceFacts("loaded", "active", "running", "enabled")}
CONTEXT = "nvidia-peermem nv_get_p2p_free_callback:134 ERROR detected invalid context, skipping further processing"
EFA = PciDevice("0000:9c:00.0", "1d0f", "efa2", "0200", driver="efa")
HIDES = SetVariable("CUDA_VISIBLE_DEVICES", "/etc/environment", 3)
NO_SYSTEM = h.host(system=None)
OLD = "this recording does not have it"


OFED = RdmaModule("mlx5_core", "24.10-2.1.8", "5A7A7A2C0E6F7E7B8C9D0E1", "OE")
AWAY = Place(("0000:f0:01.0", "0000:f1:00.0", "0000:f2:00.0"), 0)  # below a switch of its own, at the first socket
ABROAD = replace(AWAY, numa_node=1)
ON_SOCKET = Place(("0000:f0:01.0",), 1)


def lost(*at_s: int | None, layer: str = "Ethernet", address: str = "0000:1a:00.1") -> HostFacts:
    """The other port of the card of mlx5_1 lost its link then; the host is up for 90000 s."""
    host = h.system(rdma=tuple(replace(port, layer=layer) for port in h.PORTS))
    return replace(host, log=KernelLog(links_lost=(LinkLosses(address, at_s),)))


def disk(path: str, free: int, *, size: int = 1 << 40, inodes: int = 1000, inodes_free: int = 900) -> HostFacts:
    return h.system(disks=(*h.SYSTEM.disks, FileSystem(path, size, free, inodes, inodes_free)))


def cuda(driver: str, **packages: str) -> HostFacts:
    """The driver runs this CUDA, and a toolkit is installed."""
    host = h.smi(h.SEEN, cuda_version=driver)
    return replace(host, packages=h.packages(**packages))


TOOLKIT_LIST = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
SIGNER = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
LISTED = ("ctk.repo-duplicate", "ctk.repo-key")


def lists(*keyrings: str | None, held: tuple[str, ...] = (SIGNER,)) -> HostFacts:
    """The toolkit's repository is listed so often, with these keyrings; `held` is in the usual one."""
    entries = tuple(AptArchive(TOOLKIT_LIST + "/" * n, "/", (), key) for n, key in enumerate(keyrings))
    return h.host(packages=replace(h.packages(), archives=entries, primaries={KEYRING: held}))


FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("ctk.repo-duplicate", lists(KEYRING, None), f"{KEYRING} != no Signed-By"),
    ("ctk.repo-duplicate", lists("/etc/apt/keyrings/a.gpg", KEYRING), f"/etc/apt/keyrings/a.gpg != {KEYRING}"),
    ("ctk.repo-key", lists(KEYRING, held=("EB693B3035CD5710E231E123A4B469963BF863CC",)), "it holds 3BF863CC"),
    ("ctk.repo-key", lists(KEYRING, held=()), "it holds no key"),
    ("boot.default-kernel", replace(h.kernel(next_boot="6.1.0-51-amd64"), system=h.SYSTEM),
     f"has one of {h.KERNEL}, and none of 6.1.0-51-amd64"),
    ("boot.secure-boot", h.host(security=SecurityFacts(True, True, mok_pending=True)), "MokNew-* is there"),
    ("boot.uptime-vs-install", h.kernel(trees=(replace(h.TREE, release="6.1.0-51-amd64"),)),
     f"/lib/modules has 6.1.0-51-amd64, and no {h.KERNEL}"),
    ("net.efa", h.host(pci=(h.GPU, replace(EFA, driver=None))), "0000:9c:00.0/driver is absent"),
    ("net.gdrcopy", h.kernel(modules=frozenset({"nvidia"})), f"gdrdrv/{h.V}, {h.KERNEL}: installed"),
    ("net.gds", h.kernel(modules=frozenset({"nvidia"})), "/sys/module/nvidia_fs is absent"),
    ("net.ib-errors", h.port(downed=6), "mlx5_0/ports/1/counters/link_downed is 6, 25 h after the boot"),
    ("net.ib-flap", lost(*range(80_000, 80_060, 10)),
     "0000:1a:00.1 lost its link 6 times in the last 24 h, more than 5"),
    ("net.nic-gpu-affinity", h.board(mlx5_0=ABROAD, mlx5_1=ABROAD),
     "the nearest of 0000:04:00.0 is mlx5_2, at its NUMA node; the nearest of 0000:14:00.0 is mlx5_2, below its PCIe"),
    ("net.nic-gpu-affinity", h.board(gpu7=AWAY), "the nearest of 0000:35:00.0 is mlx5_0, at its NUMA node"),
    ("net.ofed-version", h.system(rdma_modules=(OFED, RdmaModule("ib_core", None, "AB12"))),
     "mlx5_core 24.10-2.1.8 from outside (taint OE), ib_core srcversion AB12 of the kernel"),
    ("net.ofed-version", h.system(rdma_modules=(OFED, replace(OFED, name="ib_core"), RdmaModule("mlx5_ib"))),
     "mlx5_ib without a version of the kernel"),
    ("net.peermem", h.driver(loaded_flavour="proprietary"), f"a module that is proprietary on kernel {h.KERNEL}"),
    ("net.peermem", h.kernel(release="5.10.0-36-amd64"), "on kernel 5.10.0-36-amd64"),
    ("net.peermem", replace(h.driver(kernel_log=(CONTEXT,)), system=None), "nv_get_p2p_free_callback:134"),
    ("net.rdma-devices", h.port(state="DOWN", physical="Polling", downed=1),
     "mlx5_0/ports/1: state DOWN, phys_state Polling"),
    ("net.rdma-devices", h.port(state="INIT"), "state INIT, phys_state LinkUp"),
    ("net.rdma-devices", h.port(rate="100 Gb/sec (1X NDR)"), "rate 100 Gb/sec (1X NDR)"),
    ("net.rdma-uniform", h.port(rate="200 Gb/sec (4X HDR)"), "board MT_0000000838, rate 200 Gb/sec (4X HDR)"),
    ("net.rdma-uniform", h.system(rdma=tuple(replace(p, layer="Ethernet", mtu=1500 if p.device == "mlx5_3" else 9000)
                                             for p in h.PORTS)), "mlx5_3/ports/1: board MT_0000000838, MTU 1500"),
    ("os.disk-boot", h.system(disks=(h.ROOT, FileSystem("/boot", 1 << 29, 60 << 20, 1000, 900))),
     "/boot: 60 MiB of 512 MiB free"),
    ("os.disk-root", disk("/var/lib/docker", 1 << 20), "/var/lib/docker: 1 MiB of 1 TiB free"),
    ("os.disk-root", disk("/var/lib/docker", 2 << 30), "2 GiB of 1 TiB free"),
    ("os.disk-root", disk("/var/lib/kubelet", 50 << 30), "50 GiB of 1 TiB free"),
    ("os.disk-root", h.system(disks=(
        FileSystem("/", 40 << 30, 30 << 30, 1000, 900), FileSystem("/var/lib/kubelet", 2 << 40, 60 << 30, 1000, 900))),
     "/var/lib/kubelet: 60 GiB of 2 TiB free"),
    *(("os.answers-understood", h.host(unread={part: "not understood: list index out of range"}),
       f"{part}: not understood: list index out of range") for part in ("pci", "driver", "runtimes", "kernel_log")),
    ("os.answers-understood", h.host(pci=(), unread={"pci": "not understood: x", "driver": "not understood: y"}),
     "pci: not understood: x; driver: not understood: y"),
    ("os.dmesg-access", h.host(unread={"kernel_log": "Permission denied"}), "Permission denied"),
    ("os.fd-pids", h.system(files_open=900, files_max=1000), "in use: 900 of 1000 open files"),
    ("os.fd-pids", h.system(threads=30000, threads_max=32768), "in use: 30000 of 32768 threads"),
    ("os.held-packages", h.host(packages=replace(h.packages(), held=frozenset({"nvidia-open"}))),
     "pinned: nvidia-open; not pinned: nvidia-driver-cuda, nvidia-kernel-open-dkms"),
    ("os.hung-tasks", h.log(hung_tasks=3, hung_in_driver=1, hung_last_s=89_000),
     "2 × blocked for more than, the last 89000 s"),
    ("user.bad-envs", h.system(variables=(HIDES,)), "/etc/environment:3 sets CUDA_VISIBLE_DEVICES"),
    ("user.cuda-driver-api", cuda("12.8", cuda__toolkit__13__1="13.1.0"), "package cuda-toolkit-13-1 is installed"),
    ("user.cuda-driver-api", cuda("12.8", cuda="13.0.2"), "cuda_version: 12.8"),
    ("os.inodes", disk("/var", 1 << 39, inodes_free=49), "/var: 49 of 1000 inodes are free"),
    ("os.memlock", h.system(memlock={"dockerd": 8 << 20, "containerd": 1 << 63}), "Max locked memory: dockerd 8 MiB"),
    ("os.memory", h.system(available_bytes=90 << 20), "MemAvailable is 90 MiB"),
    ("os.pkg-lock", replace(h.system(lock_held_s=7300), packages=LOCKED), "/proc/243/stat: it has run for 2 h"),
    ("os.readonly-fs", h.system(var_read_only=True), "/proc/mounts"),
    ("os.supported", h.host(os=OsFacts("fedora", "42", pretty_name="Fedora Linux 42")), "they ended on 2026-05-27"),
    ("os.time-sync", h.host(services=NO_TIME), "none of chrony.service is active"),
    ("os.time-sync", replace(h.system(clock_set=False), services=TIMESYNCD), "synchronized is absent"),
    ("os.unattended-upgrades", h.host(packages=AUTOMATIC), "not pinned: nvidia-driver-cuda, nvidia-kernel-open-dkms"),
    ("pci.acs", h.board(0x1D),
     "0000:02:00.0/config: ACS control is 0x001d (SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+)"),
    ("pci.acs", h.board(0x04), "0x0004 (ReqRedir+); likewise 0000:02:01.0, 0000:02:02.0"),
    ("pci.iommu-mode", h.system(iommu={h.GPU.address: "DMA-FQ"}), f"{h.GPU.address}/iommu_group/type is DMA-FQ"),
)  # fmt: skip

PASSES: tuple[tuple[str, str, HostFacts], ...] = (
    ("os.answers-understood", "what decides nothing", h.host(unread={"pci 0000:5e:00.7": "not understood: x"})),
    ("os.answers-understood", "what did not answer", h.host(unread={"kernel_log": "Permission denied"})),
    ("ctk.repo-duplicate", "one entry", lists(KEYRING)),
    ("ctk.repo-duplicate", "one repository twice with one key", lists(None, KEYRING, KEYRING)),
    ("ctk.repo-key", "NVIDIA's key of today", lists(KEYRING)),
    ("boot.secure-boot", "Secure Boot is off", h.host(security=SecurityFacts(False, True, mok_pending=True))),
    ("dev.selinux", "containers may use devices", h.enforcing(allowed=True)),
    ("drv.compiler-match", "the kernel's gcc beside an older one", h.gcc("4:11.2.0", "12.3.0-1ubuntu1~22.04")),
    ("drv.compiler-match", "an older gcc has built the module", replace(h.READY, packages=h.gcc("11.2.0").packages)),
    ("drv.vgpu", "a licence", h.licensed("Licensed (Expiry: 2027-1-14 16:38:6 GMT)")),
    ("dev.caps", "two instances in one GPU instance", h.instances(2, 1, 2, 3, 4, 5)),
    ("net.efa", "its driver has it", h.host(pci=(h.GPU, EFA))),
    ("os.hung-tasks", "two days ago", replace(h.kernel_state(uptime_s=200_000), log=KernelLog(
        hung_tasks=1, hung_last_s=1000))),
    ("os.hung-tasks", "it hung in the driver", h.log(hung_tasks=1, hung_in_driver=1)),
    ("user.cuda-driver-api", "a newer minor version", cuda("13.0", cuda__toolkit__13__2="13.2.0")),
    ("user.cuda-driver-api", "an older toolkit", cuda("13.0", nvidia__cuda__toolkit="11.5.1-1ubuntu1")),
    ("user.cuda-driver-api", "libraries of forward compatibility", cuda(
        "12.8", cuda__toolkit__13__2="13.2.0", cuda__compat__13__2="595.1")),
    ("net.ib-errors", "six times in two days", replace(h.port(downed=6), system=replace(
        h.port(downed=6).system or h.SYSTEM, uptime_s=2 * 86400))),
    ("net.ib-flap", "twice a day", lost(2000, 80_000)),
    ("net.ib-flap", "before the last day", lost(*range(100, 2_000, 100))),
    ("net.ib-flap", "another network's adapter", lost(*range(80_000, 80_900, 10), address="0000:f0:00.0")),
    ("net.ib-flap", "it has lost none", h.system(rdma=(replace(h.PORTS[0], layer="Ethernet"),))),
    ("net.ib-flap", "few, and the kernel prints no times", lost(None, None)),
    ("net.nic-gpu-affinity", "a device for each GPU, below its switch", h.board()),
    ("net.nic-gpu-affinity", "one device for all", replace(h.board(), system=replace(h.SYSTEM, rdma=h.PORTS[:1]))),
    ("net.nic-gpu-affinity", "a card with two ports for all", replace(h.board(), system=replace(h.SYSTEM, rdma=(
        h.PORTS[0], replace(h.PORTS[1], address="0000:0a:00.1"))))),
    ("net.nic-gpu-affinity", "devices at one of two sockets", replace(h.board(), system=replace(
        h.SYSTEM, rdma=h.PORTS[:4]))),
    ("net.nic-gpu-affinity", "two more devices for storage", h.board(mlx5_6=ON_SOCKET, mlx5_2=AWAY)),
    ("net.ofed-version", "OFED's, all of it", h.system(rdma_modules=(OFED, replace(OFED, name="ib_core")))),
    ("pci.acs", "ACS is off", h.board()),
    ("pci.acs", "the switches have no ACS", h.board(None)),
    ("pci.acs", "source validation alone redirects nothing", h.board(0x01)),
    ("net.peermem", "an old kernel with nvidia-peermem",
     h.kernel(release="5.10.0-36-amd64", modules=frozenset({"nvidia_peermem"}))),
    ("net.rdma-devices", "a port without a cable", h.port(state="DOWN", physical="Polling", downed=0)),
    ("net.rdma-devices", "a port that was switched off", h.port(state="DOWN", physical="Disabled", downed=2)),
    ("net.rdma-uniform", "two networks", h.system(rdma=tuple(
        replace(p, rate="200 Gb/sec (4X HDR)") if p.device in ("mlx5_0", "mlx5_1") else p for p in h.PORTS))),
    ("os.disk-root", "a large disk of images without a kubelet", replace(
        disk("/var/lib/docker", 50 << 30), kubernetes=KubernetesFacts(False))),
    ("os.held-packages", "all", h.host(packages=replace(h.packages(), held=SET))),
    ("os.held-packages", "all, by a pattern",
     h.host(packages=replace(h.packages(), held=frozenset({"nvidia-open", "nvidia-*"})))),
    ("os.time-sync", "timesyncd", replace(h.system(clock_set=True), services=TIMESYNCD)),
    ("os.unattended-upgrades", "the driver is pinned", h.host(packages=replace(AUTOMATIC, held=SET))),
)  # fmt: skip

# What a check that passes says: id, host, words.
NOTES: tuple[tuple[str, HostFacts, str], ...] = (
    ("net.nic-gpu-affinity", h.board(), "the nearest of 0000:04:00.0 is mlx5_0, below its PCIe switch or root port;"),
    ("net.ofed-version", h.READY,
     "mlx5_core srcversion 5A7A7A2C0E6F7E7B8C9D0E1 of the kernel, ib_core without a version of the kernel"),
    ("net.ofed-version", h.system(rdma_modules=(OFED, replace(OFED, name="ib_core"))),
     "/sys/module: mlx5_core 24.10-2.1.8 from outside (taint OE), ib_core 24.10-2.1.8 from outside (taint OE)"),
)  # fmt: skip

# Reasons that are not those of a host of which nothing is known: id, host, reason.
NO_VERDICT: tuple[tuple[str, HostFacts, str], ...] = (
    *((id, h.READY, "no repository of NVIDIA's") for id in LISTED),
    ("ctk.repo-key", lists("/root/key.gpg"), "/root/key.gpg was not read"),
    *((id, NO_SYSTEM, OLD) for id in (
        "boot.default-kernel", "net.ib-errors", "net.ib-flap", "net.nic-gpu-affinity", "net.ofed-version",
        "net.peermem", "net.rdma-devices",
        "net.rdma-uniform", "os.disk-boot", "os.disk-root", "os.fd-pids", "os.inodes", "os.memlock", "os.memory",
        "os.readonly-fs", "os.swap", "pci.iommu-mode")),
    ("boot.default-kernel", h.kernel(next_boot=None), "which kernel boots next"),
    ("boot.default-kernel", h.system(initramfs=None), "/boot was not read"),
    ("boot.default-kernel", h.system(initramfs=frozenset()), "no kernel has an initramfs of its own"),
    ("boot.secure-boot", h.host(security=SecurityFacts()), "not a UEFI machine"),
    ("boot.secure-boot", replace(h.driver(loaded=None), security=SecurityFacts(True, True, mok_pending=True)),
     "boot.module-signer"),
    ("boot.uptime-vs-install", h.kernel(trees=()), "does not come from a package"),
    ("net.efa", h.READY, "no Elastic Fabric Adapter"),
    ("os.hung-tasks", h.host(kernel_state=None), "counters were not read"),
    ("os.hung-tasks", h.host(unread={"kernel_log": "needs root"}), "needs root"),
    ("user.bad-envs", h.system(variables=None), "were not read"),
    ("user.bad-envs", NO_SYSTEM, OLD),
    ("user.cuda-driver-api", cuda("12.8"), "no package of a CUDA toolkit"),
    ("user.cuda-driver-api", h.smi(h.SEEN), "does not say which CUDA"),
    ("net.gdrcopy", h.driver(dkms=()), "DKMS has no gdrdrv"),
    ("net.gds", h.driver(dkms=(DkmsLine("nvidia", h.V, h.KERNEL, "installed"),)), "DKMS has no nvidia-fs"),
    ("net.ib-errors", h.system(uptime_s=None), "/proc/uptime"),
    ("net.ib-errors", h.system(rdma=(replace(h.PORTS[0], downed=None),)), "counts how often"),
    ("net.ib-flap", h.system(rdma=()), "no RDMA device"),
    ("net.ib-flap", h.READY, "the kernel logs no lost link of an InfiniBand port"),
    ("net.ib-flap", h.host(unread={"kernel_log": "Permission denied"}), "Permission denied"),
    ("net.ib-flap", lost(*(None,) * 6), "no times"),
    ("net.ib-flap", replace(lost(80_000), system=replace(lost().system or h.SYSTEM, uptime_s=None)), "/proc/uptime"),
    ("net.ib-flap", replace(lost(80_000), platform="container"), "the machine around it"),
    ("net.nic-gpu-affinity", h.system(rdma=()), "no RDMA device"),
    ("net.nic-gpu-affinity", h.system(rdma=(replace(h.PORTS[0], state="DOWN"),)), "no RDMA port is active"),
    ("net.nic-gpu-affinity", h.host(pci=(h.GPU,)), "fewer than 4 GPUs"),
    ("net.nic-gpu-affinity", replace(h.board(), virtualization="QEMU"), "a virtual machine"),
    ("net.nic-gpu-affinity", replace(h.board(), topology=None), "does not have the PCI tree"),
    ("net.nic-gpu-affinity", replace(h.board(), topology=Topology()), "was not read"),
    ("net.nic-gpu-affinity", replace(h.board(), topology=Topology({h.GPU.address: AWAY})), "was not read"),
    ("net.ofed-version", h.system(rdma_modules=None), "does not have the RDMA modules"),
    ("net.ofed-version", h.system(rdma_modules=()), "mlx5_core, ib_core is not loaded"),
    ("net.ofed-version", h.host(init="chroot"), "an image"),
    ("net.peermem", h.system(rdma=()), "no InfiniBand port"),
    ("net.peermem", replace(h.driver(loaded_flavour=None), kernel=h.READY.kernel), "is not known"),
    ("net.rdma-devices", h.system(rdma=(replace(h.PORTS[0], board=None),)), "no RDMA device"),
    ("net.rdma-devices", replace(h.port(state="INIT"), driver=replace(
        h.READY.driver, switch_management=tuple(p.address or "" for p in h.PORTS))), "no RDMA device"),
    ("net.rdma-uniform", h.system(rdma=h.PORTS[:3]), "fewer than 4"),
    ("os.disk-boot", h.system(disks=(h.ROOT, replace(h.ROOT, path="/boot"))), "no file system of its own"),
    ("os.disk-boot", h.system(disks=(h.ROOT,)), "not there"),
    ("os.disk-root", h.system(disks=()), "were not read"),
    ("os.dmesg-access", h.host(unread={"kernel_log": "not understood: x"}), "(os.answers-understood)"),
    ("os.dmesg-access", h.host(root=False), "not run as root"),
    ("os.dmesg-access", h.host(root=False, unread={"kernel_log": "Permission denied"}), "Permission denied"),
    ("os.fd-pids", h.system(files_open=None, threads=None), "were counted"),
    ("os.held-packages", h.host(packages=PackageFacts("apt", h.packages(nvidia__open="", nvidia__kernel__open__dkms="",
                                                                        nvidia__driver__cuda="").installed)),
     "no package manager owns the driver"),
    ("os.inodes", h.system(disks=(replace(h.ROOT, inodes=0, inodes_free=0),)), "fixed number of inodes"),
    ("os.memlock", h.system(memlock={}), "no engine's limits"),
    ("os.memlock", h.system(rdma=(replace(h.PORTS[0], layer="Ethernet"),)), "no InfiniBand port"),
    ("os.memory", h.system(available_bytes=None), "/proc/meminfo"),
    ("os.pkg-lock", replace(NO_SYSTEM, packages=LOCKED), "for how long is not known"),
    ("os.pkg-lock", replace(h.system(lock_held_s=90), packages=LOCKED), "it has held the lock for 90 s"),
    ("os.readonly-fs", h.system(var_read_only=None), "/proc/mounts"),
    ("os.supported", h.host(os=OsFacts("ubuntu", "20.04", pretty_name="Ubuntu 20.04")), "only with Ubuntu Pro"),
    ("os.supported", h.host(os=OsFacts("arch", "")), "until when arch gets updates is not known"),
    ("os.swap", h.system(swap=None), "/proc/swaps"),
    ("os.time-sync", h.host(services={}), "not in this recording"),
    ("os.time-sync", replace(h.system(clock_set=False, uptime_s=60), services=TIMESYNCD), "just booted"),
    ("os.time-sync", h.host(platform="container"), "the machine around it"),
    ("os.unattended-upgrades", h.host(packages=replace(h.packages(), auto_upgrade=None)), "is not known"),
    ("pci.acs", h.host(pci=(h.GPU,)), "one GPU"),
    ("pci.acs", h.host(topology=None), "does not have the PCI tree"),
    ("pci.acs", replace(h.board(0x1D), virtualization="QEMU"), "a virtual machine"),
    ("pci.acs", replace(h.board(0x1D), kernel=h.kernel(modules=frozenset({"nvidia_vgpu_vfio"})).kernel),
     "gives GPUs to"),
    ("pci.acs", replace(h.board(0x1D), pci=(*h.board().pci, replace(h.GPU, driver="vfio-pci"))), "gives GPUs to"),
    ("pci.acs", replace(h.board(0x1D), init="chroot"), "an image"),
    ("pci.acs", replace(h.board(), topology=Topology()), "in the PCI tree was not read"),
    ("pci.acs", replace(h.board(), topology=Topology(h.PLACES), root=False), "was not read: that needs root"),
    ("pci.acs", replace(h.board(), topology=Topology(dict.fromkeys(h.PLACES, ON_SOCKET))), "below one PCIe switch"),
    ("pci.iommu-mode", h.host(virtualization="QEMU"), "a virtual machine"),
    ("pci.iommu-mode", h.system(rdma=()), "no InfiniBand port"),
)  # fmt: skip
