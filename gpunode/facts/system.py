"""What the kernel tells of the machine at large, from the probe's sections `system` and `room`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from gpunode.facts.outbound import parse_outbound
from gpunode.facts.release import key_values
from gpunode.facts.wire import Sections
from gpunode.foreign import whole_number
from gpunode.model.system import UNLIMITED, CudaToolkit, FileSystem, RdmaModule, RdmaPort, SetVariable, SystemFacts

LONGEST = 64  # characters of one of the kernel's words


def parse_system(sections: Sections) -> SystemFacts | None:
    """None for a recording from before the section was there.

    uptime=90210
    MemTotal=1056444716
    swap=/dev/nvme0n1p3
    swaps=read
    rdma=mlx5_0|1|0000:1a:00.0|InfiniBand|4: ACTIVE|5: LinkUp|400 Gb/sec (4X NDR)|MT_0000000838|0|-|-
    module=mlx5_core|24.10-2.1.8|5A7A7A2C0E6F7E7B8C9D0E1|OE
    modules=read
    iommu=0000:41:00.0 DMA-FQ
    memlock=dockerd 8388608
    env=/etc/environment:3:CUDA_VISIBLE_DEVICES
    envs=read
    governor=performance 64
    governors=read
    thp=always [madvise] never
    cuda=/usr/local/cuda-12.4 "12.4.1" "12.4.131"
    cudas=read

    (gpunode.facts.outbound has more of it) and in `room`, whose tools may hang:

    mount=/ rw
    files=1836	0	2466177
    limit=32768
    / 4096 19077644 66053021 16037449 16777216
    """
    if "system" not in sections.commands:
        return None
    text, room = sections.text("system"), sections.text("room")
    value = key_values(text)
    opened = next(_all(room, "files"), "").split()
    limits = [n for word in _all(room, "limit") if (n := _natural(word)) is not None]
    return SystemFacts(
        uptime_s=_natural(value.get("uptime")),
        memory_bytes=_kibibytes(value.get("MemTotal")),
        available_bytes=_kibibytes(value.get("MemAvailable")),
        swap=tuple(_all(text, "swap")) if "swaps" in value else None,
        files_open=_natural(opened[0]) if len(opened) == 3 else None,
        files_max=_natural(opened[2], UNLIMITED) if len(opened) == 3 else None,
        threads=_natural(value.get("threads")),
        threads_max=min(limits, default=None),
        lock_held_s=_lock_age(value.get("lock"), value.get("uptime")),
        clock_set={"0": False, "1": True}.get(value.get("timesync", "")),
        initramfs=frozenset(_all(text, "initramfs")) if "boot" in value else None,
        var_read_only=_read_only(room),
        disks=tuple(_disks(room)),
        rdma=tuple(_rdma(_all(text, "rdma"))),
        rdma_modules=tuple(_modules(_all(text, "module"))) if "modules" in value else None,
        iommu=MappingProxyType(dict(_pairs(_all(text, "iommu")))),
        memlock=MappingProxyType(dict(_memlock(_all(text, "memlock")))),
        variables=tuple(_variables(_all(text, "env"))) if "envs" in value else None,
        thp=_chosen(value.get("thp")),
        governors=_governors(_all(text, "governor")) if "governors" in value else None,
        cuda=tuple(_toolkits(_all(text, "cuda"))) if "cudas" in value else None,
        outbound=parse_outbound(text),
    )


def _all(text: str, key: str) -> Iterator[str]:
    """The values of a key that may stand more than once."""
    return (line[len(key) + 1 :] for line in text.splitlines() if line.startswith(f"{key}="))


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    words = (line.split(" ") for line in lines)
    return ((pair[0], pair[1]) for pair in words if len(pair) == 2 and max(map(len, pair)) <= LONGEST)


def _natural(text: str | None, huge: int | None = None) -> int | None:
    """`huge` is what a number of more digits than whole_number takes stands for."""
    if huge is not None and re.fullmatch(r"[0-9]{19,20}", text or ""):
        return huge
    number = whole_number(text)
    return None if number is None or number < 0 else number


def _kibibytes(text: str | None) -> int | None:
    number = _natural(text)
    return None if number is None else number << 10


def _memlock(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Of two daemons of one name, that with less."""
    found: dict[str, int] = {}
    for name, word in _pairs(lines):
        most = UNLIMITED if word == "unlimited" else _natural(word, UNLIMITED)
        if most is not None:
            found[name] = min(most, found.get(name, most))
    return iter(found.items())


def _lock_age(started: str | None, uptime: str | None) -> int | None:
    """`started`: field 22 of /proc/PID/stat, in hundredths of a second since boot (USER_HZ, proc_pid_stat(5))."""
    begun, now = _natural(started), _natural(uptime)
    return None if begun is None or now is None else max(0, now - begun // 100)


def _variables(lines: Iterable[str]) -> Iterator[SetVariable]:
    for line in lines:
        found = re.fullmatch(r"(/[^:]{1,200}):([0-9]{1,6}):([A-Z0-9_]{1,64})", line, re.A)
        if found:
            yield SetVariable(found[3], found[1], int(found[2]))


def _chosen(text: str | None) -> str | None:
    """ "madvise" of "always [madvise] never"."""
    found = re.search(r"\[([a-z]{1,20})\]", text or "")
    return found[1] if found else None


def _governors(lines: Iterable[str]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for name, word in _pairs(lines):
        if (many := _natural(word)) and re.fullmatch(r"[a-z_]{1,20}", name):
            found[name] = found.get(name, 0) + many
    return MappingProxyType(found)


def _toolkits(lines: Iterable[str]) -> Iterator[CudaToolkit]:
    number = r'(?:"([0-9.]{1,20})"|\S{1,64})'
    for line in lines:
        if found := re.fullmatch(rf"(/usr/local/cuda-[0-9][\w.-]{{0,20}}) {number} {number}", line, re.A):
            yield CudaToolkit(found[1], found[2], found[3])


def _read_only(text: str) -> bool | None:
    """Of lines like `mount=/var rw`, where /var or else / is; the last mount covers those before it."""
    mounted = {path: how for path, how in _pairs(_all(text, "mount")) if how in ("ro", "rw")}
    how = mounted.get("/var", mounted.get("/"))
    return how == "ro" if how else None


def _disks(text: str) -> Iterator[FileSystem]:
    """`stat -f -c '%n %S %a %b %d %c'`: path, bytes of a block, blocks free and in all, inodes free and in all.

    /var 4096 22935552 51221504 12800000 13074432
    """
    for line in text.splitlines():
        path, *words = line.split(" ")
        numbers = [n for word in words if (n := _natural(word, UNLIMITED)) is not None]
        if path.startswith("/") and len(words) == len(numbers) == 5:
            block, free, blocks, inodes_free, inodes = numbers
            yield FileSystem(path, block * blocks, block * free, inodes, inodes_free)


def _rdma(lines: Iterable[str]) -> Iterator[RdmaPort]:
    for line in lines:
        device, *words = line.split("|")
        port = _natural(words[0]) if len(words) == 10 else None
        if port is None or max(map(len, (device, *words))) > LONGEST:
            continue
        address, layer, state, physical, rate, board, downed, interface, mtu = (
            None if w in ("-", "") else w for w in words[1:]
        )
        yield RdmaPort(
            device, port, address, layer, _after_number(state), _after_number(physical), rate, board,
            _natural(downed), interface, _natural(mtu),
        )  # fmt: skip


def _modules(lines: Iterable[str]) -> Iterator[RdmaModule]:
    for line in lines:
        words = line.split("|")
        if len(words) == 4 and all(re.fullmatch(r"[\w.+~-]{1,64}", word, re.A) for word in words):
            version, srcversion, taint = ("" if word == "-" else word for word in words[1:])
            yield RdmaModule(words[0], version or None, srcversion or None, taint)


def _after_number(text: str | None) -> str | None:
    """ "4: ACTIVE" -> "ACTIVE"."""
    return text.rpartition(": ")[2] if text else None
