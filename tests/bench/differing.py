"""One recording as the answers of many machines: what differs from host to host in a fleet of one model differs here.

Names, UUIDs, serial numbers, MAC addresses, times, process ids, free memory, what a GPU's sensors say, where the GPUs
are on the bus (four boards), and one package's revision (three). All else of such hosts is alike, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

# (what stands before it)(it)
_UUID = re.compile(rb"(\b)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
_MAC = re.compile(rb"(\b)((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\b")
_BUS = re.compile(rb"(0000:)([0-9a-fA-F]{2})(?=:[0-9a-fA-F]{2}\.[0-7])")
_PID = re.compile(rb"(process:|MainPID=|containerd:)([0-9]{2,7})\b")
_LISTED = re.compile(rb"(\n\|)([0-9]{2,7})(?= (?:dockerd|containerd|kubelet)\n)")
_TIME = re.compile(rb"(20261121T|2026-11-21T)([0-9]{2}:?[0-9]{2}:?[0-9]{2})")
_READING = re.compile(
    rb"(<(?:gpu_temp|memory_temp|power_draw|gpu_util|graphics_clock|sm_clock|used)>|_hw_therm_slowdown>)([0-9]+)"
)
_SERIAL = re.compile(rb"(<serial>)([0-9]+)")
_LEFT = re.compile(rb"(\|uptime=|Available=|\|threads=)([0-9]+)")
_REVISION = re.compile(rb"(\|dkms\t3\.0\.1)([0-9])")


def as_host(recording: bytes, number: int) -> bytes:
    """The answer of the host of this number, the same each time."""
    chance = Random(number)
    buses = number % 4  # where the GPUs are: all hosts of one board have them alike

    def digits(text: bytes) -> bytes:
        return b"%0*d" % (len(text), chance.randrange(10 ** (len(text) - 1), 10 ** len(text)))

    def near(text: bytes) -> bytes:
        """A sensor's number, of as many digits."""
        return b"%d" % max(10 ** (len(text) - 1), min(10 ** len(text) - 1, int(text) + chance.randrange(-3, 4)))

    pids: dict[bytes, bytes] = {}
    stream = recording
    for pattern, made, names in (
        (_UUID, lambda _: b"%08x-%04x-4%03x-a%03x-%012x" % tuple(map(chance.getrandbits, (32, 16, 12, 12, 48))), None),
        (_MAC, lambda _: b"02:" + b":".join(b"%02x" % chance.getrandbits(8) for _ in range(5)), None),
        (_BUS, lambda text: b"%02x" % ((int(text, 16) + buses) % 256), None),
        (_PID, digits, pids),
        (_LISTED, digits, pids),
        (_TIME, lambda text: text[:-2] + b"%02d" % chance.randrange(60), None),
        (_SERIAL, digits, None),
        (_LEFT, digits, None),
        (_REVISION, lambda _: b"%d" % (number % 3), None),
    ):
        stream = _replaced(pattern, made, stream, {} if names is None else names)
    return _READING.sub(lambda match: match[1] + near(match[2]), stream)


def _replaced(
    pattern: re.Pattern[bytes], made: Callable[[bytes], bytes], stream: bytes, names: dict[bytes, bytes]
) -> bytes:
    """What was one thing stays one (`names`): a process id in five places is another one in all of them."""

    def one(match: re.Match[bytes]) -> bytes:
        if match[2] not in names:
            names[match[2]] = made(match[2])
        return match[1] + names[match[2]]

    return pattern.sub(one, stream)
