"""Whether a GPU is a vGPU: a share that a hypervisor makes, which only the vGPU guest (GRID) driver drives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gpunode.catalog.vgpu import vgpu_guests
from gpunode.model.facts import PciDevice
from gpunode.model.smi import SmiFacts
from gpunode.regex import regex

CAPABILITY_LIST, FIRST_POINTER, VENDOR_SPECIFIC = 0x10, 0x34, 0x09  # bit of the status register; PCI 3.0, 6.7
# "NVIDIA A10-24Q", "GRID A100-1-5CME", "GRID P4-2B4": the framebuffer in GB and the edition.
SHARE = regex(r".*-[0-9]{1,3}[ABCQ](4|ME)?")


def capability_evidence(config: str | None) -> str | None:
    """What a GPU's config space (all 256 bytes as hex) says of it; None: no vGPU, or not that much was read.

    NVIDIA's own detection (k8s-device-plugin, internal/vgpu) takes the vendor-specific capability for a vGPU's when
    "VF" follows its header, and in it the record 0 for ten bytes of the hypervisor's driver version:

    09 68 1b 56 46 00 16 34 36 30 2e 31 36 00 00 00 00 72 34 36 30 ...   VF, 460.16, r460_00
    """
    space = bytes.fromhex(config) if config and re.fullmatch(r"[0-9a-f]{512}", config) else b""
    for found in _capabilities(space):
        if found[:1] == bytes([VENDOR_SPECIFIC]) and found[3:5] == b"VF":
            version = re.match(rb"[0-9]{3}\.[0-9.]{1,6}", found[7:17]) if found[5:6] == b"\0" else None
            driver = f", and its hypervisor has driver {version[0].decode()}" if version else ""
            return f'its PCI capability 0x09 is signed "VF"{driver}'
    return None


def _capabilities(space: bytes) -> Iterator[bytes]:
    """Each capability up to the end of the config space, as the list has them; a list in a circle ends."""
    if not space or not space[6] & CAPABILITY_LIST:
        return
    at, seen = space[FIRST_POINTER], set[int]()
    while 0x40 <= at < 0xFF and at not in seen:
        seen.add(at)
        yield space[at:]
        at = space[at + 1]


def with_vgpus(devices: tuple[PciDevice, ...], smi: SmiFacts | None, *, virtual: bool) -> tuple[PciDevice, ...]:
    """The devices; where capabilities say nothing the driver's names tell, and in a `virtual` machine the PCI ids."""
    names = {gpu.pci_address: gpu.name for gpu in smi.gpus} if smi else {}
    found = ((d, d.vgpu or _by_name(names.get(d.address, "")) or (_by_ids(d) if virtual else None)) for d in devices)
    return tuple(device if vgpu == device.vgpu else replace(device, vgpu=vgpu) for device, vgpu in found)


def _by_name(name: str) -> str | None:
    return f"nvidia-smi calls it {name}" if SHARE.fullmatch(name) else None


def _by_ids(device: PciDevice) -> str | None:
    if device.vendor != "10de" or device.subsystem is None:
        return None
    guest = vgpu_guests().get(f"{device.device}:{device.subsystem[5:]}")
    return f"its PCI ids {guest.pci} are those of {guest.name}" if guest else None
