"""The far side of the wire: python -m tests.bench.fleet.far_side DIRECTORY

In the network namespace of whoever starts it there is then a device to FLEETS; behind it, in a namespace of its own, an
sshd answers at every address. Neither namespace has another way out, so no packet leaves this machine. The hosts' file
system is this machine's with a throw-away layer over it (overlayfs on a tmpfs): what a client does there as root is
gone afterwards. Each line on stdin is answered with what went over the wire since the last (packets.py). At the end of
stdin everything ends: namespaces, mounts and devices belong to no process then, and the kernel takes them away.

Needs root, /dev/net/tun and overlayfs; not sch_netem, which small kernels lack: the delay is made here.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from tests.bench.fleet.acceptor import accept_forever, listening
from tests.bench.fleet.packets import Counts

CLIENT = "10.77.0.1"
FLEETS = {"10.78.0.0/16": 0.025, "10.79.0.0/16": 0.0}  # subnet -> seconds one way
_DELAY_S = {int(subnet.split(".")[1]): delay for subnet, delay in FLEETS.items()}  # by the second byte of an address
_NEWNS, _NEWNET = 0x20000, 0x40000000  # sched.h; os.unshare is new in Python 3.12
_TUNSETIFF, _TUN, _NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
_PACKET_BYTES = 65536


def main(directory: Path) -> None:
    here = _tun("fleet0")
    _ip(f"addr add {CLIENT}/32 dev fleet0", "link set fleet0 txqueuelen 20000 up")
    _ip(*(f"route add {subnet} dev fleet0 src {CLIENT}" for subnet in FLEETS))
    if ctypes.CDLL(None, use_errno=True).unshare(_NEWNS | _NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    there = _tun("fleet1")
    _ip("link set lo up", "link set fleet1 txqueuelen 20000 up", f"route add {CLIENT}/32 dev fleet1")
    _ip(*(f"route add local {subnet} dev lo" for subnet in FLEETS))
    for name in ("core/somaxconn", "ipv4/tcp_max_syn_backlog"):
        Path("/proc/sys/net", name).write_text("8192")
    _throw_away_root(directory)
    listener = listening()
    acceptor = os.fork()
    if acceptor == 0:
        os.setsid()
        os.chroot(directory / "far/root")
        os.chdir("/")
        accept_forever(listener, str(directory))
    listener.close()
    try:
        os.nice(-10)  # a delay is to stay one on a busy machine
        print("ready", flush=True)
        _carry(here, there)
    finally:
        os.killpg(acceptor, signal.SIGKILL)


def _tun(name: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TUN | _NO_PI))
    return descriptor


def _ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(("ip", *command.split()), check=True)


def _throw_away_root(directory: Path) -> None:
    """DIRECTORY/far/root: this machine's root, with all that is written kept in memory, for this process's children."""

    def mount(*words: str) -> None:
        subprocess.run(("mount", *words), check=True)

    mount("--make-rprivate", "/")
    far = directory / "far"
    far.mkdir()
    mount("-t", "tmpfs", "fleet", str(far))
    layers = {name: far / name for name in ("upper", "work", "root")}
    for path in layers.values():
        path.mkdir()
    places = f"lowerdir=/,upperdir={layers['upper']},workdir={layers['work']}"
    mount("-t", "overlay", "fleet", "-o", places, str(layers["root"]))
    root = layers["root"]
    for shared in ("/proc", "/dev", "/sys", str(directory)):
        Path(f"{root}{shared}").mkdir(parents=True, exist_ok=True)
        mount("--rbind", shared, f"{root}{shared}")
    for empty in ("/run", "/root"):  # an rc file of this machine's root is not what is measured
        mount("-t", "tmpfs", "fleet", f"{root}{empty}")
    (root / "run/sshd").mkdir(mode=0o755)


def _carry(here: int, there: int) -> None:
    """Packets from one device to the other, each after its subnet's delay, until stdin ends."""
    counts = Counts()
    # A delay does not change, so what came first leaves first: (due, device, packet), a queue for each direction.
    waiting: dict[int, deque[tuple[float, bytes]]] = {here: deque(), there: deque()}
    while True:
        due = min((queue[0][0] for queue in waiting.values() if queue), default=None)
        ready, _, _ = select.select((here, there, 0), (), (), None if due is None else max(0.0, due - time.monotonic()))
        if 0 in ready:
            if not os.read(0, 4096):
                return
            print(json.dumps(counts.taken()), flush=True)
        for source in ready:
            if source:
                _take(source, there if source == here else here, waiting, counts, to_server=source == here)
        now = time.monotonic()
        for device, queue in waiting.items():
            while queue and queue[0][0] <= now:
                _write(device, queue.popleft()[1])


def _take(
    source: int, target: int, waiting: dict[int, deque[tuple[float, bytes]]], counts: Counts, *, to_server: bool
) -> None:
    for _ in range(256):
        try:
            packet = os.read(source, _PACKET_BYTES)
        except BlockingIOError:
            return
        delay = _DELAY_S.get(packet[17] if to_server else packet[13], 0.0)
        counts.saw(packet, to_server)
        if delay:
            waiting[target].append((time.monotonic() + delay, packet))
        else:
            _write(target, packet)


def _write(device: int, packet: bytes) -> None:
    with suppress(OSError):  # the device's queue is full, or the packet is none: lost, as on any wire
        os.write(device, packet)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
