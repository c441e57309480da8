"""Whether a GPU is a vGPU: from its PCI capabilities, the driver's name for it and its PCI ids, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.vgpu import capability_evidence, with_vgpus
from gpunode.model.facts import PciDevice
from gpunode.model.smi import SmiFacts, SmiGpu
from tests.facts.hosts import make_root, run_probe
from tests.recorded.guests import vgpu_config

T4_16Q = vgpu_config("1eb8", "130f", "570.172.07")
SIGNED = 'its PCI capability 0x09 is signed "VF"'


def changed(at: int, *values: int) -> str:
    space = bytearray.fromhex(T4_16Q)
    space[at : at + len(values)] = bytes(values)
    return space.hex()


@pytest.mark.parametrize(
    ("config", "evidence"),
    [
        (T4_16Q, f"{SIGNED}, and its hypervisor has driver 570.172.07"),
        (changed(0xD7, 0x1B, 0x5B, 0x41), SIGNED),
        (changed(0xD5, 0x01), SIGNED),
        (changed(0xD3, 0x00, 0x00), None),
        (changed(0x06, 0x00), None),
        (changed(0x34, 0x68), None),
        (changed(0xD0, 0x05), None),
        (changed(0xD0, 0x05, 0xD0), None),
        (changed(0x34, 0xFF), None),
        (changed(0x34, 0xFE), None),
        (T4_16Q[:128], None),
        (T4_16Q[:8], None),
        ("ffffffff", None),
        ("zz" * 256, None),
        (None, None),
    ],
    ids=[
        "a vGPU", "no version there", "another record first", "a whole GPU's capability", "no list",
        "VF outside the list", "VF in another capability", "a list in a circle", "a list that ends with ff",
        "a list at the end", "without root", "four bytes", "off the bus", "no hex", "unread",
    ],
)  # fmt: skip
def test_the_signed_capability_is_a_vgpus(config: str | None, evidence: str | None) -> None:
    assert capability_evidence(config) == evidence


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA A10-24Q", True),
        ("GRID A100-1-5CME", True),
        ("GRID P4-2B4", True),
        ("NVIDIA L4-3Q", True),
        ("NVIDIA A100-SXM4-80GB", False),
        ("NVIDIA H20-3e", False),
        ("NVIDIA A10", False),
        ("Tesla T4", False),
        ("", False),
    ],
)
def test_the_drivers_name_tells_a_vgpu(name: str, found: bool) -> None:
    device = PciDevice("0000:19:00.0", "10de", "2236", "0302")
    smi = SmiFacts(0, gpus=(SmiGpu(0, "0000:19:00.0", name),))
    (seen,) = with_vgpus((device,), smi, virtual=False)
    assert seen.vgpu == (f"nvidia-smi calls it {name}" if found else None)


@pytest.mark.parametrize(
    ("vendor", "subsystem", "virtual", "found"),
    [
        ("10de", "10de:1733", True, "its PCI ids 27b8:1733 are those of L4-3Q"),
        ("10de", "10de:16ee", True, None),
        ("10de", "10de:1733", False, None),
        ("15b3", "10de:1733", True, None),
        ("10de", None, True, None),
    ],
    ids=["AWS g6f", "a whole L4", "on bare metal", "another vendor's", "no subsystem"],
)
def test_pci_ids_tell_a_vgpu_in_a_virtual_machine(
    vendor: str, subsystem: str | None, virtual: bool, found: str | None
) -> None:
    device = PciDevice("0000:19:00.0", vendor, "27b8", "0302", subsystem=subsystem)
    assert [d.vgpu for d in with_vgpus((device,), None, virtual=virtual)] == [found]


@pytest.mark.parametrize(
    ("hypervisor", "chroot", "config", "platform"),
    [
        (True, False, T4_16Q, "vgpu"),
        (True, False, changed(0xD3, 0x00, 0x00), None),
        (True, False, T4_16Q[:128], None),
        (False, False, T4_16Q, None),
        (True, True, T4_16Q, None),
    ],
    ids=[
        "a guest",
        "a whole GPU in a guest",
        "a guest, without root",
        "bare metal",
        "an image that is built in a guest",
    ],
)
@pytest.mark.parametrize("shell", [("sh",), ("bash",), ("busybox", "sh")], ids=" ".join)
def test_the_probe_reads_the_capabilities_in_a_virtual_machine(
    tmp_path: Path, shell: tuple[str, ...], hypervisor: bool, chroot: bool, config: str, platform: str | None
) -> None:
    root = make_root(tmp_path)
    (root / "proc" / "cpuinfo").write_text(f"flags\t\t: fpu{' hypervisor' if hypervisor else ''} lahf_lm\n")
    (root / "sys/bus/pci/devices/0000:41:00.0/config").write_bytes(bytes.fromhex(config))
    (root / "proc" / "1").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "1" / "root").symlink_to(tmp_path.parent if chroot else root)
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert host.platform == platform
    assert [device.config_head for device in host.pci] == ([] if chroot else ["de10b81e"])
