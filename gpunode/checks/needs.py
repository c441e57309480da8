"""What a check must know before it can give a verdict: each returns the reason why it cannot, or None when it can."""

from __future__ import annotations

from gpunode.checks.gpu_node import not_on_pci
from gpunode.checks.registry import Need, Witness
from gpunode.model.facts import HostFacts
from gpunode.model.installed import installed_version, signs_of_driver
from gpunode.model.operator import IN_CHARGE, owned_by_operator
from gpunode.model.platforms import platform_origin


def read(*sections: str) -> Need:
    """The probe read all of these sections."""

    def unread(host: HostFacts) -> str | None:
        return next((f"{s} was not read: {host.unread[s]}" for s in sections if s in host.unread), None)

    return unread


def gpu(host: HostFacts) -> str | None:
    """There is a GPU on the PCI bus."""
    if "pci" in host.unread and not host.gpus:
        return f"pci was not read: {host.unread['pci']}"
    return None if host.gpus else "no NVIDIA GPU on the PCI bus (pci.gpu-present)"


def gpu_for_containers(host: HostFacts) -> str | None:
    """There is a GPU that containers can be given, be it on the PCI bus or the platform's own."""
    return gpu(host) if not_on_pci(host) is None else None


def host_driver(host: HostFacts) -> str | None:
    """The driver is loaded by this host's kernel, for the host's own use."""
    if host.driver.container:
        return "a driver container owns the driver (the GPU Operator's)"
    if host.platform == "container":
        return "this is a container: kernel and driver are those of the machine around it"
    if (elsewhere := not_on_pci(host)) and (origin := platform_origin(host)):
        return f"{origin.summary}: {elsewhere}"
    if host.gpus and not host.own_gpus:
        return "every GPU is bound to vfio-pci (passthrough)"
    return None


def container(host: HostFacts) -> str | None:
    """It is a running container, whose kernel and driver are its host's."""
    return None if host.platform == "container" else "not a container"


def no_platform_driver(host: HostFacts) -> str | None:
    """The driver does not come with the platform."""
    origin = platform_origin(host)
    return origin.summary if origin else None


def own_driver(host: HostFacts) -> str | None:
    """The driver is one that setup installs and keeps."""
    return host_driver(host) or no_platform_driver(host)


def own_toolkit(host: HostFacts) -> str | None:
    """The toolkit and the engines' configuration are not the GPU Operator's."""
    owned = owned_by_operator(host)
    return f"{IN_CHARGE} toolkit and engines ({'; '.join(owned)})" if owned else None


def loaded(host: HostFacts) -> str | None:
    return "the nvidia module is not loaded (drv.module-loaded shows why)" if host.driver.loaded is None else None


def module(host: HostFacts) -> str | None:
    """The running kernel has a module, in memory or on disk."""
    known = host.driver.loaded or host.driver.installed
    return None if known else "the running kernel has no nvidia module (drv.module-loaded)"


def version(host: HostFacts) -> str | None:
    """A driver's version is known, of its module or its packages."""
    known = host.driver.loaded or host.driver.installed or installed_version(host)
    return None if known else "no NVIDIA driver is loaded or installed"


def driver(host: HostFacts) -> str | None:
    """A driver is loaded or on disk, be it without a module for the running kernel."""
    return None if host.driver.loaded or signs_of_driver(host) else "no NVIDIA driver is loaded or installed"


def toolkit(host: HostFacts) -> str | None:
    return None if host.toolkit.version else "the NVIDIA Container Toolkit is not installed (ctk.installed)"


def smi_ran(host: HostFacts) -> str | None:
    return f"nvidia-smi was not run: {host.unread.get('smi', 'no reason given')}" if host.driver.smi is None else None


def packages(host: HostFacts) -> str | None:
    if host.packages.manager is None:
        return "no package manager that gpunode knows"
    return None if host.packages.installed else "the list of installed packages is empty"


def dkms(host: HostFacts) -> str | None:
    """The kernel module is built on this host, by DKMS."""
    packaged = any("dkms" in name and "nvidia" in name and "nvidia-fs" not in name for name in host.packages.installed)
    built = any(line.of_driver for line in host.driver.dkms)
    return None if built or packaged else "DKMS does not build the driver here"


def system(host: HostFacts) -> str | None:
    """The machine's memory, disks and networks were read."""
    if host.system is not None:
        return None
    image = host.init == "chroot"
    return "an image has no memory, disks or networks of its own" if image else "this recording does not have it"


def topology(host: HostFacts) -> str | None:
    """The PCI tree was looked at."""
    return "this recording does not have the PCI tree" if host.topology is None else None


def machine(host: HostFacts) -> str | None:
    """Clock and kernel are its own."""
    if host.init == "chroot":
        return "an image that is being built does not run"
    return "a container has those of the machine around it" if host.platform == "container" else None


def log_too_short(host: HostFacts) -> str | None:
    """Neither the kernel's memory nor the journal goes back to the boot, or as far as an error counts as recent."""
    from gpunode.catalog.xids import limits

    begins, state = host.log.begins_s, host.kernel_state
    if begins is None or (state and state.uptime_s and state.uptime_s - begins > limits()["xid-hours"] * 3600):
        return None
    return f"the kernel's log begins {begins} s after boot: what came before is gone, from the journal as well"


kernel_log = Witness(read("kernel_log", "kmsg", "log", "dmesg"), log_too_short)


def engine(host: HostFacts) -> str | None:
    return None if host.runtimes else "no container engine is installed"


def kubelet(host: HostFacts) -> str | None:
    """Kubernetes is on this host, be it running or not."""
    here = host.kubernetes.kubelet or any(one.embedded_in for one in host.runtimes)
    return None if here else "no kubelet: Kubernetes is not on this host"


def joined(host: HostFacts) -> str | None:
    """The kubelet belongs to a cluster."""
    return None if host.kubernetes.joined else "the kubelet has not joined a cluster: it has no kubeconfig"


def running_kubelet(host: HostFacts) -> str | None:
    return None if host.kubernetes.running else "the kubelet does not run (k8s.kubelet-up)"


def settings(host: HostFacts) -> str | None:
    """The kubelet's flags and configuration were read."""
    return None if host.kubernetes.settings else "the kubelet's settings were not read"


def device_plugins(host: HostFacts) -> str | None:
    """The kubelet's directory for device plugins was read."""
    if host.kubernetes.device_plugins is not None:
        return None
    return "the kubelet's directory was not read" + ("" if host.root else ": that needs root")


def node(host: HostFacts) -> str | None:
    """The API server answered about this node."""
    if host.kubernetes.node is not None:
        return None
    return f"the node's object is not known: {host.unread.get('node', 'the API server was not asked')}"
