"""Machines whose driver comes with the platform: whose it is, how we know, and how another one comes."""

from __future__ import annotations

from dataclasses import replace

from gpunode.model.driver import ForeignDriver
from gpunode.model.facts import HostFacts

PLATFORMS = {
    "wsl": ForeignDriver(
        "Windows provides the driver of WSL, and one for Linux would hide it",
        "/dev/dxg and /usr/lib/wsl/lib are there",
        "install NVIDIA's driver for Windows on the machine, then wsl --shutdown",
    ),
    "l4t": ForeignDriver(
        "the driver of a Jetson comes with its board support package (L4T)",
        "/etc/nv_tegra_release is there",
        "update JetPack (its nvidia-l4t packages)",
    ),
    "container": ForeignDriver(
        "this is a container, and its kernel and driver are those of the machine around it",
        "its PID namespace is not the machine's, and it is a running container",
        "run gpunode on the machine around it, whose tools bring libraries of that driver into the container (LXD and "
        "Incus: nvidia.runtime=true); an image is built where no init, engine or GPU is: a chroot, docker build",
    ),
    "vgpu": ForeignDriver(
        "this virtual machine has a vGPU, a share of a GPU, which only the vGPU guest (GRID) driver drives",
        "PCI ids and capabilities",  # of this host's: platform_origin
        "install the cloud's GRID driver (AWS, Azure and Google publish theirs), elsewhere the vGPU guest driver from "
        "NVIDIA's licensing portal, of a branch that the hypervisor's driver supports",
    ),
}


def platform_origin(host: HostFacts) -> ForeignDriver | None:
    """Whose driver this machine has; None where it is the host's own."""
    origin = PLATFORMS.get(host.platform or "")
    if origin is None or host.platform != "vgpu":
        return origin
    return replace(origin, evidence="; ".join(f"{gpu.address}: {gpu.vgpu}" for gpu in host.pci if gpu.vgpu))
