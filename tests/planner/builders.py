"""Hosts made by hand for planner tests: say what is special about a host, the rest is a plain Ubuntu 24.04 server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpunode.model.facts import (
    HostFacts,
    KernelFacts,
    KernelTree,
    OsFacts,
    PciDevice,
)
from gpunode.model.packages import PackageFacts, PackageVersion

H100, H200, B200, GH200, A100, T4, V100, P100, K80, L4 = (
    "2330", "2335", "2901", "2342", "20b2", "1eb8", "1db5", "15f8", "102d", "27b8",
)  # fmt: skip
RELEASE = "6.8.0-51-generic"
TOOLS = {"gnupg": "2.4.4-2", "curl": "8.5.0-2", "ca-certificates": "20240203"}
OSES = {
    "ubuntu-22.04": OsFacts("ubuntu", "22.04", ("debian",), "jammy", "Ubuntu 22.04.5 LTS"),
    "ubuntu-24.04": OsFacts("ubuntu", "24.04", ("debian",), "noble", "Ubuntu 24.04.1 LTS"),
    "ubuntu-26.04": OsFacts("ubuntu", "26.04", ("debian",), "resolute", "Ubuntu 26.04 LTS"),
    "debian-12": OsFacts("debian", "12", (), "bookworm", "Debian GNU/Linux 12 (bookworm)"),
    "debian-13": OsFacts("debian", "13", (), "trixie", "Debian GNU/Linux 13 (trixie)"),
    "debian-sid": OsFacts("debian", "", (), "forky", "Debian GNU/Linux forky/sid"),
    "rocky-8": OsFacts("rocky", "8.10", ("rhel", "centos", "fedora"), "", "Rocky Linux 8.10"),
    "rocky-9": OsFacts("rocky", "9.4", ("rhel", "centos", "fedora"), "", "Rocky Linux 9.4"),
    "rocky-10": OsFacts("rocky", "10.0", ("rhel", "centos", "fedora"), "", "Rocky Linux 10.0"),
    "oracle-9": OsFacts("ol", "9.6", ("fedora",), "", "Oracle Linux Server 9.6"),
    "oracle-10": OsFacts("ol", "10.0", ("fedora",), "", "Oracle Linux Server 10.0"),
    "fedora-43": OsFacts("fedora", "43", (), "", "Fedora Linux 43 (Server Edition)"),
    "arch": OsFacts("arch", "", (), "", "Arch Linux"),
    "ubuntu-20.04": OsFacts("ubuntu", "20.04", ("debian",), "focal", "Ubuntu 20.04.6 LTS"),
    "sles-15": OsFacts("sles", "15.7", ("suse",), "", "SUSE Linux Enterprise Server 15 SP7"),
    "azure-3": OsFacts("azurelinux", "3.0", ("fedora",), "", "Microsoft Azure Linux 3.0"),
    "openeuler": OsFacts("openEuler", "24.03", (), "", "openEuler 24.03"),
    "gentoo": OsFacts("gentoo", "2.17", (), "", "Gentoo Linux"),
}


def gpus(*devices: str, driver: str | None = None) -> tuple[PciDevice, ...]:
    """One 3D controller per PCI device id, each bound to `driver`."""
    return tuple(PciDevice(f"0000:{n:02x}:00.0", "10de", d, "0302", driver=driver) for n, d in enumerate(devices, 0x19))


def switches(count: int) -> tuple[PciDevice, ...]:
    return tuple(PciDevice(f"0000:{n:02x}:00.0", "10de", "22a3", "0680") for n in range(7, 7 + count))


def packages(
    installed: Mapping[str, str],
    *,
    held: Sequence[str] = (),
    broken: Sequence[str] = (),
    manager: str = "apt",
    **more: Any,
) -> PackageFacts:
    versions = {n: PackageVersion(v, "iF" if n in broken else "ii") for n, v in {**TOOLS, **installed}.items()}
    return PackageFacts(manager, versions, frozenset(held), **more)


def kernel(*modules: str, headers: bool = True, **more: Any) -> KernelFacts:
    facts = KernelFacts(
        RELEASE,
        trees=(KernelTree(RELEASE, True, headers, None),),
        modules=frozenset(modules),
        next_boot=RELEASE,
        initramfs_tool="update-initramfs",
    )
    return replace(facts, **more)


def host(*devices: str, os: str = "ubuntu-24.04", **more: Any) -> HostFacts:
    """A host with these GPUs (PCI device ids)."""
    manager = "dnf" if os.startswith(("rocky", "oracle")) else "apt"
    tools = {"gnupg2": "2.3"} if manager == "dnf" else {}
    facts = HostFacts(
        target="gpu07",
        hostname="gpu07",
        os=OSES[os],
        kernel=kernel(),
        root=True,
        pci=gpus(*devices),
        packages=packages(tools, manager=manager),
        stream_sha256="0" * 64,
    )
    return replace(facts, **more)
