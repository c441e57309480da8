"""PCI functions of NVIDIA, and InfiniBand functions (HGX B200 boards show their NVLink switches as ConnectX)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from gpunode.facts.vgpu import capability_evidence
from gpunode.foreign import hex_number, whole_number
from gpunode.model.facts import NOT_UNDERSTOOD, NVIDIA_VENDOR, PciDevice


class PciFacts(NamedTuple):
    devices: tuple[PciDevice, ...] = ()
    unread: Mapping[str, str] = MappingProxyType({})  # "pci" -> why; "pci 0000:5e:00.7" for a function that is no GPU's


def parse_pci(text: str, lspci: str = "") -> PciFacts:
    """The probe's `pci` section in bus order; `-` is an attribute that sysfs does not have.

    A line that is not understood hides no other. Without an id it is of a function that left the bus while it was read.

    address|vendor|class|device|subsystem vendor|subsystem device|width|max width|
        speed|max speed|numa node|power|driver|first four config bytes|BAR1 (on one line)

    0000:41:00.0|0x10de|0x030200|0x2330|0x10de|0x16c1|16|16|
        32.0 GT/s PCIe|32.0 GT/s PCIe|0|active|nvidia|de103023|0x00 0x00 0x00

    Of a GPU that may be a vGPU all 256 config bytes are there.
    """
    names = parse_lspci(lspci)
    devices: list[PciDevice] = []
    unread: dict[str, str] = {}
    for fields in (line.split("|") for line in text.splitlines() if line.strip()):
        try:
            devices.append(_device(fields, names))
        except ValueError as fault:
            unread.setdefault(_part_of(fields), f"{NOT_UNDERSTOOD}{fields[0][:20]}: {fault}")
    return PciFacts(tuple(devices), MappingProxyType(unread))


def _part_of(fields: list[str]) -> str:
    """Without NVIDIA's functions the bus is not known; virtual ones of a network card come and go."""
    vendor = hex_number(fields[1]) if len(fields) == 15 else None
    return "pci" if vendor in (None, int(NVIDIA_VENDOR, 16)) else f"pci {fields[0][:20]}"


def parse_lspci(text: str) -> dict[str, str]:
    """address -> name, from `lspci -Dnn -d 10de:`:

    0000:41:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
    """
    return dict(pair for line in text.splitlines() if (pair := _named(line)))


def _named(line: str) -> tuple[str, str] | None:
    """(address, name): what stands between the class in brackets and the last pair of ids, each searched once."""
    address, _, rest = line.partition(" ")
    kind = re.search(r"\[[0-9a-f]{4}\]: (?:NVIDIA Corporation )?", rest)
    ids = [m.start() for m in re.finditer(r" \[[0-9a-f]{4}:[0-9a-f]{4}\]", rest[kind.end() :])] if kind else []
    return (address, rest[kind.end() :][: ids[-1]]) if kind and ids and address else None


def _device(fields: list[str], names: dict[str, str]) -> PciDevice:
    if len(fields) != 15:
        raise ValueError(f"a PCI line has {len(fields)} fields, not 15: {'|'.join(fields)[:80]}")
    address, vendor, klass, device, sub_vendor, sub_device, *rest = fields
    width, width_max, speed, speed_max, numa, power, driver, head, bar1 = (None if f == "-" else f for f in rest)
    return PciDevice(
        address=address,
        vendor=_hex4(vendor),
        device=_hex4(device),
        class_code=klass.removeprefix("0x")[:4],
        subsystem=None if "-" in (sub_vendor, sub_device) else f"{_hex4(sub_vendor)}:{_hex4(sub_device)}",
        driver=driver,
        name=names.get(address),
        link_width=_integer(width),
        link_width_max=_integer(width_max),
        link_speed=speed,
        link_speed_max=speed_max,
        numa_node=_integer(numa),
        runtime_status=power,
        config_head=head[:8] if head else None,
        bar1_bytes=_bar_bytes(bar1),
        vgpu=capability_evidence(head),
    )


def _hex4(text: str) -> str:
    number = hex_number(text)
    if number is None or number > 0xFFFF:
        raise ValueError(f"a PCI id is not four hexadecimal digits: {text[:20]!r}")
    return f"{number:04x}"


def _integer(text: str | None) -> int | None:
    return whole_number(text)


def _bar_bytes(line: str | None) -> int | None:
    """A line of sysfs `resource`: start, end (inclusive), flags. All zero: no such BAR."""
    start, end, *rest = map(hex_number, (line or "").split()[:4]) if len((line or "").split()) == 3 else (None, None)
    return end - start + 1 if end and start is not None and end >= start and None not in rest else None
