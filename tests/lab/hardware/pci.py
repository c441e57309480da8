"""A fake /sys/bus/pci/devices, complete enough for the real lspci -vv: plain directories, no symlinks needed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
MEMORY_32 = 0x40200  # resource flags of linux/ioport.h: memory, 32 bit
MEMORY_64 = 0x14220C  # memory, 64 bit, prefetchable
IS_64 = 0x100000
BAR_64, BAR_32 = 0x20_0000_0000, 0xA000_0000


@dataclass(frozen=True)
class Bar:
    index: int
    size_bytes: int
    flags: int = MEMORY_64


@dataclass(frozen=True)
class Device:
    """Ids as in pci.ids. Subsystem ids other than the H100's are plausible, not verified."""

    vendor: int
    device: int
    class_code: int
    revision: int
    subvendor: int
    subdevice: int
    bars: tuple[Bar, ...]


def _gpu(device: int, subdevice: int, memory_bytes: int) -> Device:
    bars = (Bar(0, 16 * MIB, MEMORY_32), Bar(2, memory_bytes), Bar(4, 32 * MIB))
    return Device(0x10DE, device, 0x030200, 0xA1, 0x10DE, subdevice, bars)


DEVICES = {
    "h100": _gpu(0x2330, 0x16C1, 128 * GIB),
    "l4": _gpu(0x27B8, 0x16EE, 32 * GIB),
    "v100": _gpu(0x1DB5, 0x1249, 32 * GIB),
    "nvswitch": Device(0x10DE, 0x22A3, 0x068000, 0xA1, 0x10DE, 0x1796, (Bar(0, 32 * MIB, MEMORY_32),)),
    "cx7": Device(0x15B3, 0x1021, 0x020700, 0x00, 0x15B3, 0x0041, (Bar(0, 32 * MIB),)),
    "bmc": Device(0x1A03, 0x2000, 0x030000, 0x52, 0x1A03, 0x2000, (Bar(0, 64 * MIB, MEMORY_32),)),
}


def write_device(directory: Path, device: Device) -> None:
    """One /sys/bus/pci/devices/ADDRESS."""
    directory.mkdir(parents=True)
    class_code = device.class_code
    alias = (
        f"pci:v{device.vendor:08X}d{device.device:08X}sv{device.subvendor:08X}sd{device.subdevice:08X}"
        f"bc{class_code >> 16:02X}sc{class_code >> 8 & 255:02X}i{class_code & 255:02X}"
    )
    lines = {
        "vendor": f"0x{device.vendor:04x}",
        "device": f"0x{device.device:04x}",
        "subsystem_vendor": f"0x{device.subvendor:04x}",
        "subsystem_device": f"0x{device.subdevice:04x}",
        "class": f"0x{class_code:06x}",
        "revision": f"0x{device.revision:02x}",
        "modalias": alias,
        "irq": "16",
        "numa_node": "0",
        "enable": "1",
        "power_state": "D0",
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
        "resource": _resources(device),
    }
    for name, line in lines.items():
        (directory / name).write_text(line + "\n")
    (directory / "power").mkdir()
    (directory / "power" / "runtime_status").write_text("active\n")
    (directory / "config").write_bytes(_configuration(device))


def _resources(device: Device) -> str:
    rows = [(0, 0, 0)] * 7
    for bar in device.bars:
        rows[bar.index] = (_base(bar), _base(bar) + bar.size_bytes - 1, bar.flags)
    return "\n".join(f"0x{start:016x} 0x{end:016x} 0x{flags:016x}" for start, end, flags in rows)


def _base(bar: Bar) -> int:
    return BAR_64 * (bar.index + 1) if bar.flags & IS_64 else BAR_32


def _configuration(device: Device) -> bytes:
    """Configuration space: header, power management and PCI Express capabilities at full width and speed."""
    space = bytearray(4096)
    code = device.class_code
    struct.pack_into(
        "<HHHHBBBBBBBB",
        space,
        0,
        device.vendor,
        device.device,
        0x0546,
        0x0010,
        device.revision,
        code & 255,
        code >> 8 & 255,
        code >> 16,
        0,
        0,
        0,
        0,
    )
    for bar in device.bars:
        struct.pack_into("<I", space, 0x10 + 4 * bar.index, (_base(bar) & 0xFFFFFFF0) | (bar.flags & 0xF))
        if bar.flags & IS_64:
            struct.pack_into("<I", space, 0x14 + 4 * bar.index, _base(bar) >> 32)
    struct.pack_into("<HH", space, 0x2C, device.subvendor, device.subdevice)
    space[0x34], space[0x3D] = 0x60, 1  # first capability, interrupt pin A
    struct.pack_into("<BBHI", space, 0x60, 0x01, 0x78, 0x0003, 0x8)
    width_and_speed = 16 << 4 | 5  # x16, 32 GT/s
    struct.pack_into("<BBHIHHIHH", space, 0x78, 0x10, 0, 0x0002, 0x8FE1, 0x2930, 0, width_and_speed, 0, width_and_speed)
    return bytes(space)
