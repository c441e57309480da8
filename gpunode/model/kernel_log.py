"""What the kernel's log and its counters say of this boot: values only, no line of the log.

Lines hold names that users choose (a process may be called anything), so nothing of a line but numbers, addresses and
words of the kernel's own are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.values import dataclass


@dataclass(frozen=True)
class LoggedXid:
    """All of one Xid at one GPU."""

    code: int  # 79
    address: str  # "0000:1c:00": the driver prints no function
    count: int = 1
    last_s: int | None = None  # seconds since boot; None: the kernel prints no times
    fatal: bool | None = None  # 144 to 150: the worst that one of them says of itself
    link: int | None = None  # 144 to 150: the NVLink of the last one
    recovery: str | None = None  # 154: what the GPU needs since the last one, "GPU Reset Required"


@dataclass(frozen=True)
class LoggedSxid:
    """All of one SXid at one NVSwitch."""

    code: int  # 20034
    address: str  # "0000:c3:00.0"
    count: int = 1
    last_s: int | None = None
    fatal: bool | None = None  # None: the line does not say
    link: int | None = None  # of the last one


@dataclass(frozen=True)
class LoggedAer:
    """All errors of one kind that PCIe reported of one function of NVIDIA's."""

    address: str  # "0000:41:00.0"
    how: str  # "corrected" | "nonfatal" | "fatal"
    count: int = 1
    last_s: int | None = None


@dataclass(frozen=True)
class LinkLosses:
    """When a network adapter lost its link."""

    address: str  # "0000:1a:00.0"
    at_s: tuple[int | None, ...]  # in seconds since boot; None: the kernel prints no times


@dataclass(frozen=True)
class KernelLog:
    """What this boot's log says, as far back as it goes."""

    xids: tuple[LoggedXid, ...] = ()  # in the order in which they came first
    sxids: tuple[LoggedSxid, ...] = ()
    aer: tuple[LoggedAer, ...] = ()
    links_lost: tuple[LinkLosses, ...] = ()  # of network adapters that can do RDMA
    driver_since_s: int | None = None  # when the driver was loaded last: what came before, it does not know of
    machine_checks: int = 0  # lines of "[Hardware Error]" by CPUs and memory
    hung_tasks: int = 0  # tasks that did not run for minutes, since they wait for something
    hung_last_s: int | None = None  # the last of them, in seconds since boot
    hung_in_driver: int = 0  # those of them whose stack has a function of the driver
    links_undetected: int = 0  # times, since the driver was loaded, that it could not tell which NVLinks are connected
    firmware_missing: tuple[str, ...] = ()  # "nvidia/595.91.07/gsp_ga10x.bin"
    begins_s: int | None = None  # its first line, in seconds since boot; None: of the first minute, or not known


@dataclass(frozen=True)
class AerCounters:
    """Errors of one PCIe function since boot, as its root port heard of them."""

    correctable: int | None = None
    nonfatal: int | None = None
    fatal: int | None = None


@dataclass(frozen=True)
class KernelState:
    """What the kernel counts and keeps."""

    uptime_s: int | None = None
    taint: int | None = None  # /proc/sys/kernel/tainted
    # names of files in /sys/fs/pstore: "dmesg-efi-171"; None: it could not be read
    crashes: tuple[str, ...] | None = None
    aer: Mapping[str, AerCounters] = field(default_factory=lambda: MappingProxyType({}))  # PCI address -> its counters
    memory_corrected: int | None = None  # EDAC, all controllers
    memory_uncorrected: int | None = None
