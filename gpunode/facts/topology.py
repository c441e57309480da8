"""The PCI tree above GPUs and RDMA devices, from the probe's sections `topology` and `switch_config`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from gpunode.facts.wire import Sections
from gpunode.foreign import whole_number
from gpunode.model.topology import Place, Topology
from gpunode.regex import regex

MOST_PLACES, MOST_BRIDGES, MOST_PORTS = 128, 16, 64  # the probe's own limits, and more than any tree's depth
_ADDRESS = regex(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.A)
_LINE = regex(r"(?P<at>[0-9a-f]{6,8})(?P<words>(?: [0-9a-f]{8}){4})?", re.A)
_ROW_BYTES = 16
CONFIG_BYTES, PCI_BYTES = 4096, 256  # of a PCI Express function, of others
ACS, NONE = 0x000D, (0, 0xFFFFFFFF)  # extended capability (PCIe 5.0, 7.7.8); a list's end, a function off the bus
_MARK = tuple(int.from_bytes(b"gpunode-boundary"[n : n + 4], "little") for n in range(0, _ROW_BYTES, 4))
_MOST_ROWS = MOST_PORTS * (CONFIG_BYTES // _ROW_BYTES + 1)

_UNREAD = -1

Row = tuple[int, ...]  # sixteen bytes as four little-endian words


def parse_topology(sections: Sections) -> Topology | None:
    """None for a recording from before the sections were there.

    place=1 pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:19:00.0
    port=0000:17:02.0

    and in `switch_config` the config space of each port in turn behind a mark, as `od -Ax -tx4` prints them: `*` stands
    for further lines like the one before.

    000000 6e757067 2d65646f 6e756f62 79726164
    000010 c03010b5 00100147 060400b0 00010010
    """
    if "topology" not in sections.commands:
        return None
    lines = sections.text("topology").split("\n")
    ports = [line[5:] for line in lines if line.startswith("port=") and _ADDRESS.fullmatch(line[5:])]
    spaces = _spaces(_rows(sections.text("switch_config")))
    known = zip(ports, spaces, strict=True) if len(ports) == len(spaces) else ()
    acs = {port: control for port, space in known if (control := _acs(space)) != _UNREAD}
    return Topology(MappingProxyType(dict(_places(lines))), MappingProxyType(acs))


def _places(lines: Sequence[str]) -> Iterator[tuple[str, Place]]:
    for line in [line[6:] for line in lines if line.startswith("place=")][:MOST_PLACES]:
        node, _, path = line.partition(" ")
        # Below a host bridge; some disks' controllers have one of their own ("pci10000:e0") in the middle of a path.
        names = [name for name in path.split("/") if not name.startswith("pci")]
        if 0 < len(names) <= MOST_BRIDGES and all(map(_ADDRESS.fullmatch, names)):
            number = whole_number(node)
            yield names[-1], Place(tuple(names[:-1]), None if number is None or number < 0 else number)


def _rows(dump: str) -> list[Row]:
    """Each sixteen bytes; up to the first line that is none of od's."""
    rows: list[Row] = []
    repeated = False
    for line in dump.split("\n"):
        if line == "*":
            repeated = bool(rows)
            continue
        found = _LINE.fullmatch(line.rstrip())
        at = int(found["at"], 16) // _ROW_BYTES if found else -1
        if found is None or not len(rows) <= at <= _MOST_ROWS or (at > len(rows) and not repeated):
            break
        rows.extend(rows[-1:] * (at - len(rows)))
        repeated = False
        if found["words"]:
            rows.append(tuple(int(word, 16) for word in found["words"].split()))
    return rows


def _spaces(rows: Sequence[Row]) -> list[list[int]]:
    """What stands behind each mark, word by word."""
    spaces: list[list[int]] = []
    for row in rows:
        if row == _MARK:
            spaces.append([])
        elif spaces:
            spaces[-1].extend(row)
    return spaces


def _acs(space: Sequence[int]) -> int | None:
    """The control register; None where the function has none, _UNREAD where too little was read."""
    if len(space) * 4 == PCI_BYTES:
        return None  # no extended capabilities: it is no PCI Express function
    if len(space) * 4 != CONFIG_BYTES or space[0] in NONE:
        return _UNREAD
    at, seen = PCI_BYTES, set[int]()
    while PCI_BYTES <= at < CONFIG_BYTES - 4 and at not in seen:
        seen.add(at)
        header = space[at // 4]
        if header in NONE:
            return None
        if header & 0xFFFF == ACS:
            return space[at // 4 + 1] >> 16
        at = header >> 20 & 0xFFC
    return None
