"""Constructed guests with a vGPU: the hypervisor's driver decides which driver is theirs."""

from __future__ import annotations

from tests.recorded.nouns import Driver, GpuModel, Recipe, enterprise, ubuntu


def vgpu_config(device: str, subsystem: str, driver: str) -> str:
    """256 bytes of config space as a hypervisor makes them for a vGPU.

    Laid out as the one in NVIDIA's own test (k8s-device-plugin, internal/vgpu): the list begins at 0xd0 with the
    capability that has the hypervisor's driver, and ends at 0x68 with MSI.
    """
    space = bytearray(256)
    space[0:4] = bytes.fromhex(f"de10{device[2:]}{device[:2]}")
    space[6] = 0x10  # there is a list of capabilities
    space[0x2C:0x30] = bytes.fromhex(f"de10{subsystem[2:]}{subsystem[:2]}")
    space[0x34] = 0xD0
    space[0x68:0x6A] = bytes([0x05, 0x00])
    branch = f"r{driver.split('.')[0]}_00"
    record = b"VF" + bytes([0x00, 0x16]) + driver.encode().ljust(10, b"\0") + branch.encode().ljust(10, b"\0")
    space[0xD0 : 0xD0 + 27] = bytes([0x09, 0x68, 0x1B]) + record
    return space.hex()


UBUNTU2204 = ubuntu("22.04", "jammy", "6.8.0-1029-aws")
UBUNTU2204_AZURE = ubuntu("22.04", "jammy", "6.8.0-1031-azure")
ROCKY9 = enterprise("rocky", "Rocky Linux", "9.6", "5.14.0-570.58.1.el9_6.x86_64")

GUESTS = (
    Recipe(
        "ubuntu2204-aws-g6f",
        "an AWS g6f with an eighth of an L4 (L4-3Q) and no driver: known by its PCI ids",
        UBUNTU2204,
        (GpuModel("27b8", "AD104GL [L4]", subsystem="10de:1733"),),
        docker="28.5.2",
        secure_boot=None,
        identity=("hypervisor=Amazon EC2",),
    ),
    Recipe(
        "ubuntu2204-azure-nvadsa10",
        "an Azure NVadsA10 v5 with a share of an A10 and Azure's GRID driver from a .run file",
        UBUNTU2204_AZURE,
        (GpuModel("2236", "GA102GL [A10]", subsystem="10de:14bb"),),
        docker="28.5.2",
        secure_boot=None,
        driver=Driver("570.237", "proprietary", ()),
        marks=("runfile=/usr/bin/nvidia-uninstall",),
        identity=("hypervisor=Microsoft Corporation",),
    ),
    Recipe(
        "rocky9-vmware-vgpu",
        "a VMware guest with a T4-16Q and no driver: known by its PCI capability",
        ROCKY9,
        (
            GpuModel(
                "1eb8", "TU104GL [Tesla T4]", subsystem="10de:130f", config=vgpu_config("1eb8", "130f", "570.172.07")
            ),
        ),
        containerd="1.7.28",
        secure_boot=None,
        identity=("hypervisor=VMware, Inc.",),
    ),
)
