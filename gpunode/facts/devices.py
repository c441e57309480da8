"""Device nodes, as `ls -l` shows them, and what the kernel gave out as numbers."""

from __future__ import annotations

import re

from gpunode.model.facts import DeviceNode
from gpunode.regex import regex

_NODE = regex(
    r"c(?P<bits>[rwxsStT-]{9})\S?\s+\d+\s+\d+\s+\d+\s+(?P<major>[0-9]{1,9}),\s*(?P<minor>[0-9]{1,9})\s.*?(?P<path>/dev/.*)"
)


def parse_devices(text: str, char_links: str) -> tuple[DeviceNode, ...]:
    """Character devices of `ls -ln`, with the MAJOR:MINOR links that /dev/char has:

    crw-rw-rw- 1 0 0 195,   0 Nov 21 14:00 /dev/nvidia0
    """
    links = set(char_links.split())
    matches = (_NODE.match(line) for line in text.splitlines())
    return tuple(
        DeviceNode(m["path"], int(m["major"]), int(m["minor"]), _mode(m["bits"]), f"{m['major']}:{m['minor']}" in links)
        for m in matches
        if m
    )


def parse_uvm_major(text: str) -> int | None:
    """/proc/devices, only nvidia's lines: `511 nvidia-uvm`."""
    match = re.search(r"^[ \t]*([0-9]{1,9}) nvidia-uvm$", text, re.MULTILINE)
    return int(match[1]) if match else None


def _mode(bits: str) -> int:
    """ "rw-rw-rw-" -> 0o666; set-id and sticky letters count as what they hide."""
    return sum(1 << (8 - i) for i, bit in enumerate(bits) if bit not in "-ST")
