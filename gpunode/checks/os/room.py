"""Is there room: on the disks, in memory, for files and threads?"""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import PRUNE, bytes_of
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.system import FileSystem, SystemFacts
from gpunode.remedy import Remedy, RepairAction

SYSTEM = (needs.gpu, needs.system)
UNREAD = "the file systems were not read"


@check(
    "os.disk-root",
    Severity.ERROR,
    title="the disks have room for images, logs and packages",
    reads="statfs of /, /var and the engines' and kubelet's directories",
    remedy=Remedy(RepairAction.CONFIGURE, PRUNE),
    needs=SYSTEM,
)
def disk_root(host: HostFacts, context: Context) -> CheckOutcome:
    """A disk is full, or so nearly that no image or package fits on it, or the kubelet evicts the node's pods."""
    disks = _disks(host)
    if not disks:
        return NotApplicable(UNREAD)
    # Each is judged: the kubelet's large disk may be too full with more bytes free than a small one that is well has.
    judged = [(disk, problem) for disk in disks if (problem := _full(disk, host))]
    if not judged:
        return None
    worst, (severity, says) = min(judged, key=lambda one: (one[1][0] is Severity.WARNING, one[0].free_bytes))
    return _short(worst, says, f"{bytes_of(worst.free_bytes)} of {bytes_of(worst.size_bytes)} free", severity)


def _full(disk: FileSystem, host: HostFacts) -> tuple[Severity, str] | None:
    from gpunode.catalog.system_limits import limit

    if disk.free_bytes < limit("disk-bytes-full"):
        return Severity.ERROR, "is full"
    if disk.free_bytes < limit("disk-bytes-low"):
        return Severity.WARNING, "is nearly full"
    # An engine's disk may be a large one that nothing is evicted for; the kubelet looks at its own.
    percent = limit("disk-percent-kubelet")
    if host.kubernetes.kubelet and disk.free_bytes * 100 < disk.size_bytes * percent:
        return Severity.WARNING, f"has less than {percent} % left: the kubelet evicts pods"
    return None


def _short(disk: FileSystem, says: str, evidence: str, severity: Severity) -> Finding:
    return Finding(
        f"the disk of {disk.path} {says}",
        evidence=f"{disk.path}: {evidence}",
        remedy=Remedy(RepairAction.CONFIGURE, PRUNE),
        severity=severity,
    )


def _disks(host: HostFacts) -> tuple[FileSystem, ...]:
    """Without /boot, and without small file systems that are made by the size of what is in them (squashfs)."""
    disks = host.system.disks if host.system else ()
    return tuple(disk for disk in disks if disk.path != "/boot" and disk.size_bytes > 0)


@check(
    "os.inodes",
    Severity.WARNING,
    title="the disks have inodes left",
    reads="statfs of /, /var and the engines' and kubelet's directories",
    remedy=Remedy(RepairAction.CONFIGURE, PRUNE),
    needs=SYSTEM,
)
def inodes(host: HostFacts, context: Context) -> CheckOutcome:
    """A file system runs out of inodes: no file can be made on it though it has room."""
    from gpunode.catalog.system_limits import limit

    disks = [disk for disk in _disks(host) if disk.inodes]
    if not disks:
        return NotApplicable("no file system has a fixed number of inodes" if _disks(host) else UNREAD)
    worst = min(disks, key=lambda disk: disk.inodes_free / disk.inodes)
    if worst.inodes_free * 100 >= worst.inodes * limit("inodes-percent-low"):
        return None
    return _short(
        worst, "runs out of inodes", f"{worst.inodes_free} of {worst.inodes} inodes are free", Severity.WARNING
    )


@check(
    "os.disk-boot",
    Severity.WARNING,
    title="/boot has room for the next kernel",
    reads="statfs of /boot",
    remedy=Remedy(RepairAction.UPGRADE, "remove kernels that are not needed"),
    needs=SYSTEM,
)
def disk_boot(host: HostFacts, context: Context) -> CheckOutcome:
    """/boot has no room for another kernel with its initramfs: the next upgrade leaves one that does not boot."""
    from gpunode.catalog.system_limits import limit

    boot, root = (host.system.disk(path) if host.system else None for path in ("/boot", "/"))
    if boot is None:
        return NotApplicable("/boot was not read, or is not there")
    if root is not None and boot.size_bytes == root.size_bytes and boot.inodes == root.inodes:
        return NotApplicable("/boot is no file system of its own (os.disk-root)")
    if boot.free_bytes >= limit("boot-bytes-low"):
        return None
    return Finding(
        "/boot has no room for another kernel",
        evidence=f"/boot: {bytes_of(boot.free_bytes)} of {bytes_of(boot.size_bytes)} free",
        remedy=Remedy(
            RepairAction.UPGRADE, "remove kernels that are not needed; then check that each has an initramfs"
        ),
    )


@check(
    "os.readonly-fs",
    Severity.ERROR,
    title="/var can be written",
    reads="/proc/mounts",
    remedy=Remedy(RepairAction.REPLACE, "read the kernel log for the disk's errors; reboot, and replace the disk"),
    needs=SYSTEM,
)
def readonly_fs(host: HostFacts, context: Context) -> CheckOutcome:
    """The file system that has /var is read-only, as the kernel leaves it after errors: no engine can work."""
    read_only = host.system.var_read_only if host.system else None
    if read_only is None:
        return NotApplicable("/proc/mounts was not read")
    if not read_only:
        return None
    return Finding(
        "the file system of /var is read-only",
        evidence="/proc/mounts: where /var or / is mounted, the options begin with ro",
        remedy=Remedy(
            RepairAction.REPLACE, "journalctl -k -b | grep -i -e I/O -e EXT4-fs -e XFS; reboot, replace a failing disk"
        ),
    )


@check(
    "os.memory",
    Severity.WARNING,
    title="memory is available",
    reads="/proc/meminfo",
    remedy=Remedy(RepairAction.NONE, "ps -eo pid,rss,args --sort=-rss | head shows who has it"),
    needs=SYSTEM,
)
def memory(host: HostFacts, context: Context) -> CheckOutcome:
    """Next to no memory is available: the kernel is about to kill processes."""
    from gpunode.catalog.system_limits import limit

    available = host.system.available_bytes if host.system else None
    if available is None:
        return NotApplicable("/proc/meminfo was not read")
    if available >= limit("memory-bytes-low"):
        return None
    return Finding(
        "the host is out of memory",
        evidence=f"/proc/meminfo: MemAvailable is {bytes_of(available)}",
        remedy=Remedy(RepairAction.NONE, "ps -eo pid,rss,args --sort=-rss | head shows who has it"),
    )


@check(
    "os.fd-pids",
    Severity.WARNING,
    title="files and threads are below the kernel's limits",
    reads="/proc/sys/fs/file-nr, /proc/loadavg, kernel.pid_max and kernel.threads-max",
    remedy=Remedy(RepairAction.CONFIGURE, "end what leaks them, or raise fs.file-max and kernel.pid_max with sysctl"),
    needs=SYSTEM,
)
def fd_pids(host: HostFacts, context: Context) -> CheckOutcome:
    """Most of the files or threads that the kernel allows are in use: soon no process can be started."""
    from gpunode.catalog.system_limits import limit

    used = list(_used(host.system)) if host.system else []
    if not used:
        return NotApplicable("neither files nor threads were counted")
    near = [f"{now} of {most} {what}" for what, now, most in used if now * 100 > most * limit("used-percent-high")]
    if not near:
        return None
    return Finding(
        "the kernel's limits are nearly reached",
        evidence=f"in use: {listing(near)}",
        remedy=Remedy(
            RepairAction.CONFIGURE, "end what leaks them, or raise fs.file-max and kernel.pid_max with sysctl"
        ),
    )


def _used(system: SystemFacts) -> Iterator[tuple[str, int, int]]:
    if system.files_open is not None and system.files_max:
        yield "open files", system.files_open, system.files_max
    if system.threads is not None and system.threads_max:
        yield "threads", system.threads, system.threads_max
