"""Constructed hosts of distributions that are made from others, and of releases that NVIDIA's repository has not."""

from __future__ import annotations

from dataclasses import replace

from tests.recorded.nouns import GpuModel, Recipe, System, debian, os_release, rpm_system, ubuntu

L4 = GpuModel("27b8", "AD104GL [L4]", 1, "10de:16ee", bar1_gib=32)
T4 = GpuModel("1eb8", "TU104GL [Tesla T4]", subsystem="10de:12a2")
RTX4090 = GpuModel(
    "2684", "AD102 [GeForce RTX 4090]", subsystem="1043:88e2", class_code="0x030000", driver="nouveau", bar1_gib=32
)
TOOLKIT = ("--only", "toolkit,runtime")


def like(kernel: str, name: str, **values: str) -> System:
    """A derivative of Ubuntu, or a release of it between the LTS ones."""
    return replace(ubuntu("24.04", "noble", kernel), os_release=os_release(name, **values))


MINT22 = replace(
    like(
        "6.14.0-37-generic",
        "Linux Mint 22.3",
        ID="linuxmint",
        ID_LIKE="ubuntu debian",
        VERSION_ID="22.3",
        VERSION_CODENAME="zena",
        UBUNTU_CODENAME="noble",
    ),
    kernel_packages=(
        "linux-image-6.14.0-37-generic=6.14.0-37.37~24.04.1",
        "linux-image-generic-hwe-24.04=6.14.0-37.37~24.04.1",
    ),
)
MINT21 = replace(
    ubuntu("22.04", "jammy", "5.15.0-161-generic"),
    os_release=os_release(
        "Linux Mint 21.3",
        ID="linuxmint",
        ID_LIKE="ubuntu debian",
        VERSION_ID="21.3",
        VERSION_CODENAME="virginia",
        UBUNTU_CODENAME="jammy",
    ),
)
POP24 = like(
    "6.18.7-76061807-generic",
    "Pop!_OS 24.04 LTS",
    ID="pop",
    ID_LIKE="ubuntu debian",
    VERSION_ID="24.04",
    VERSION_CODENAME="noble",
    UBUNTU_CODENAME="noble",
)
POP22 = replace(
    ubuntu("22.04", "jammy", "6.17.9-76061709-generic"),
    os_release=os_release(
        "Pop!_OS 22.04 LTS",
        ID="pop",
        ID_LIKE="ubuntu debian",
        VERSION_ID="22.04",
        VERSION_CODENAME="jammy",
        UBUNTU_CODENAME="jammy",
    ),
)
ZORIN18 = like(
    "6.14.0-37-generic",
    "Zorin OS 18",
    ID="zorin",
    ID_LIKE="ubuntu debian",
    VERSION_ID="18",
    VERSION_CODENAME="noble",
    UBUNTU_CODENAME="noble",
)
UBUNTU2510 = like(
    "6.17.0-12-generic",
    "Ubuntu 25.10",
    ID="ubuntu",
    ID_LIKE="debian",
    VERSION_ID="25.10",
    VERSION_CODENAME="questing",
)
UBUNTU2610 = like(
    "7.2.0-9-generic",
    "Ubuntu 26.10",
    ID="ubuntu",
    ID_LIKE="debian",
    VERSION_ID="26.10",
    VERSION_CODENAME="stonking",
)
FEDORA45 = rpm_system("fedora", "Fedora Linux", "45", "7.1.6-300.fc45.x86_64", "dnf5")
TUMBLEWEED = rpm_system(
    "opensuse-tumbleweed", "openSUSE Tumbleweed", "20261120", "7.1.5-1-default", "zypper", "kernel-default"
)
LMDE7 = replace(
    debian("13", "trixie", "6.12.57-amd64"),
    os_release=os_release("LMDE 7 (gigi)", ID="linuxmint", ID_LIKE="debian", VERSION_ID="7", VERSION_CODENAME="gigi"),
)
AZURE4 = rpm_system("azurelinux", "Azure Linux", "4.0", "6.18.31-1.5.azl4.x86_64", "dnf5", "kernel")

DERIVATIVES = (
    Recipe(
        "mint22-rtx4090",
        "an RTX 4090 on Linux Mint 22, which gets the driver of Ubuntu 24.04",
        MINT22,
        (RTX4090,),
        docker="28.5.2",
        modules=("nouveau",),
    ),
    Recipe("mint21-t4", "a T4 on Linux Mint 21, which gets the driver of Ubuntu 22.04", MINT21, (T4,), docker="27.5.1"),
    Recipe("popos22", "Pop!_OS 22.04: System76 builds its driver", POP22, (RTX4090,), docker="27.5.1"),
    Recipe(
        "popos24-toolkit",
        "Pop!_OS 24.04 with toolkit and engines asked for",
        POP24,
        (RTX4090,),
        docker="28.5.2",
        options=TOOLKIT,
    ),
    Recipe(
        "zorin18-toolkit",
        "Zorin OS, of which the catalog has no row: toolkit and engines asked for, as it is like Ubuntu",
        ZORIN18,
        (RTX4090,),
        docker="28.5.2",
        options=TOOLKIT,
    ),
    Recipe("zorin18", "Zorin OS, of which the catalog has no row", ZORIN18, (RTX4090,), docker="28.5.2"),
    Recipe("ubuntu2510", "a T4 on Ubuntu 25.10, whose support has ended", UBUNTU2510, (T4,), docker="28.5.2"),
    Recipe("ubuntu2610", "an L4 on Ubuntu 26.10, which is no LTS release", UBUNTU2610, (L4,), docker="29.1.3"),
    Recipe(
        "ubuntu2610-toolkit",
        "Ubuntu 26.10 with toolkit and engines asked for",
        UBUNTU2610,
        (L4,),
        docker="29.1.3",
        options=TOOLKIT,
    ),
    Recipe("fedora45", "an L4 on Fedora 45, for which NVIDIA has no directory yet", FEDORA45, (L4,), docker="29.1.3"),
    Recipe("tumbleweed-l4", "an L4 on openSUSE Tumbleweed", TUMBLEWEED, (L4,), docker="29.1.3"),
    Recipe(
        "lmde7-toolkit",
        "LMDE, which is Linux Mint made from Debian: toolkit and engines asked for",
        LMDE7,
        (RTX4090,),
        docker="28.5.2",
        options=TOOLKIT,
    ),
    Recipe("azure4", "an L4 on Azure Linux 4, which has no driver yet", AZURE4, (L4,), containerd="2.2.1"),
    Recipe(
        "azure4-toolkit",
        "Azure Linux 4 with toolkit and engines asked for",
        AZURE4,
        (L4,),
        containerd="2.2.1",
        options=TOOLKIT,
    ),
)
