"""What a check must know before it can give a verdict: each returns the reason why it cannot, or None when it can."""

from __future__ import annotations

from gpunode.checks.registry import Need
from gpunode.model.facts import HostFacts


def read(*sections: str) -> Need:
    """The probe read all of these sections."""

    def unread(host: HostFacts) -> str | None:
        return next((f"{s} was not read: {host.unread[s]}" for s in sections if s in host.unread), None)

    return unread


def gpu(host: HostFacts) -> str | None:
    """There is a GPU on the PCI bus."""
    if "pci" in host.unread:
        return f"pci was not read: {host.unread['pci']}"
    return None if host.gpus else "not a GPU node: no NVIDIA GPU on the PCI bus"


def host_driver(host: HostFacts) -> str | None:
    """The driver is the host's own, for the host's own use."""
    if host.driver.container:
        return "a driver container owns the driver (/run/nvidia/driver)"
    if host.gpus and all(d.driver == "vfio-pci" for d in host.gpus):
        return "every GPU is bound to vfio-pci (passthrough)"
    return None


def loaded(host: HostFacts) -> str | None:
    return "the nvidia module is not loaded (drv.module-loaded shows why)" if host.driver.loaded is None else None


def version(host: HostFacts) -> str | None:
    """A driver is loaded or at least on disk."""
    known = host.driver.loaded or host.driver.installed
    return None if known else "no NVIDIA driver is loaded or installed"


def toolkit(host: HostFacts) -> str | None:
    return None if host.toolkit.version else "the NVIDIA Container Toolkit is not installed (ctk.installed)"


def packages(host: HostFacts) -> str | None:
    if host.packages.manager is None:
        return "no package manager that gpunode knows"
    return None if host.packages.installed else "the list of installed packages is empty"


def dkms(host: HostFacts) -> str | None:
    """The kernel module is built on this host, by DKMS."""
    packaged = any("dkms" in name and "nvidia" in name for name in host.packages.installed)
    return None if host.driver.dkms or packaged else "DKMS does not build the driver here"


def kernel_log(host: HostFacts) -> str | None:
    return read("kernel_log", "kmsg", "log", "dmesg")(host)


def engine(host: HostFacts) -> str | None:
    return None if host.runtimes else "no container engine is installed"
