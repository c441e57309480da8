"""What a host has, in the words of `expect:`: a check compares with it, and a snapshot is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from gpunode.catalog.load import Catalog
from gpunode.checks.health.seen import known, named
from gpunode.checks.needs import read, system
from gpunode.checks.net.rdma import rdma_ports
from gpunode.model.facts import HostFacts, PciDevice, RuntimeFacts
from gpunode.model.installed import PINNING
from gpunode.model.report import NotApplicable
from gpunode.model.smi import SmiGpu
from gpunode.model.system import RdmaPort
from gpunode.regex import regex

# The packages of driver, CUDA, toolkit and engines, by the beginnings of their names in every distribution.
_COUNTED = regex(
    r"(lib)?nvidia|libcuda|libnv|libnccl|cuda|a?kmod-nvidia|linux-modules-nvidia|xserver-xorg-video-nvidia|datacenter-gpu"
    r"|docker|containerd|moby|runc|cri-o|podman"
)
Seen = tuple[str, ...] | NotApplicable  # () for what the host has none of; else why it is not known


def unread(host: HostFacts, *sections: str) -> NotApplicable | None:
    """Why these sections of the probe say nothing."""
    why = read(*sections)(host)
    return NotApplicable(why) if why else None


def model_of(catalog: Catalog, device: PciDevice) -> str:
    """The catalog's name of a GPU; its PCI device id where the catalog does not list it."""
    model = catalog.gpu_model(device.device)
    return model.name if model.known else device.device


def models(host: HostFacts, catalog: Catalog) -> Seen:
    return unread(host, "pci") or tuple(sorted({model_of(catalog, gpu) for gpu in host.gpus}))


def gpus(host: HostFacts) -> Seen:
    return unread(host, "pci") or (str(len(host.gpus)),)


def nvswitches(host: HostFacts, catalog: Catalog) -> Seen:
    return unread(host, "pci") or (str(len(catalog.nvswitches(host))),)


def numa(host: HostFacts) -> Seen:
    """("0=4", "1=4"); -1 is what the kernel has where the firmware names no node."""
    nodes = [gpu.numa_node for gpu in host.gpus]
    if why := unread(host, "pci"):
        return why
    if None in nodes or -1 in nodes:
        return NotApplicable("the firmware does not say at which NUMA node each GPU is")
    return tuple(f"{node}={count}" for node, count in sorted(Counter(nodes).items(), key=str))


def driver(host: HostFacts) -> Seen:
    """Of the module that is loaded; of the one on disk where none is."""
    version = host.driver.loaded or host.driver.installed
    return (version,) if version else ()


def flavour(host: HostFacts) -> Seen:
    facts = host.driver
    found = facts.loaded_flavour if facts.loaded else facts.installed_flavour
    if found is None and driver(host):
        return NotApplicable("neither /proc/driver/nvidia/version nor modinfo says which kernel modules these are")
    return (found,) if found else ()


def cuda(host: HostFacts) -> Seen:
    smi = host.driver.smi
    if smi is None:
        return NotApplicable(f"nvidia-smi was not run: {host.unread.get('smi', 'no reason given')}")
    if smi.cuda_version is None:
        return NotApplicable("nvidia-smi does not say which CUDA the driver runs (user.smi-works)")
    return (smi.cuda_version,)


def toolkit(host: HostFacts) -> Seen:
    return (host.toolkit.version,) if host.toolkit.version else ()


def running(host: HostFacts) -> tuple[RuntimeFacts, ...]:
    """The engines that serve the whole host: not those that a user runs without root."""
    return tuple(engine for engine in host.runtimes if engine.active and engine.user is None)


def engines(host: HostFacts) -> Seen:
    return tuple(f"{one.label}={one.version}" if one.version else one.label for one in running(host))


def with_handlers(host: HostFacts) -> tuple[RuntimeFacts, ...]:
    """The daemons that start containers by handlers: not podman, and no containerd that only docker uses (no CRI)."""
    docker_only = not host.kubernetes.kubelet
    return tuple(one for one in running(host) if one.unit and not (docker_only and one.cri_error))


def mute(host: HostFacts) -> tuple[RuntimeFacts, ...]:
    """The daemons that do not say which handlers they have; where none runs, those that could."""
    daemons = with_handlers(host)
    if not daemons:
        return tuple(one for one in host.runtimes if one.unit and one.user is None)
    return tuple(one for one in daemons if one.effective_default is None)


def silent(host: HostFacts) -> NotApplicable | None:
    """Why the handlers of the engines are not known: the first daemon that did not answer, or that none runs."""
    if not with_handlers(host):
        return NotApplicable("no container engine runs that has handlers")
    first = next((one for one in mute(host) if not one.handlers), None)
    return NotApplicable(f"{first.label} did not say which handlers it has (rt.present)") if first else None


def handlers(host: HostFacts) -> Seen:
    """Those that every engine has."""
    each = [set(engine.handlers) for engine in with_handlers(host)]
    return silent(host) or tuple(sorted(set.intersection(*each)))


def default_runtimes(host: HostFacts) -> Seen:
    if why := silent(host):
        return why
    if quiet := mute(host):
        return NotApplicable(f"{quiet[0].label} did not say which runtime is its default")
    return tuple(f"{one.label}={one.effective_default}" for one in with_handlers(host))


def cdi(host: HostFacts) -> Seen:
    """Of the engines that say it: ("docker=on", "containerd=off")."""
    told = [one for one in with_handlers(host) if one.cdi is not None]
    if not told:
        return NotApplicable("no container engine says whether CDI is enabled in it")
    return tuple(f"{one.label}={'on' if one.cdi else 'off'}" for one in told)


def packages(host: HostFacts) -> Seen:
    """("nvidia-open=595.91.07-1",): of driver, CUDA, toolkit and engines, those that are configured.

    Which package pins the driver is setup's to choose: a branch has one, and the same version asked for another.
    """
    if host.packages.manager is None:
        return NotApplicable("there is no package manager that gpunode knows")
    there = {name: one.version for name, one in host.packages.installed.items() if one.configured}
    counted = (name for name in sorted(there) if _COUNTED.match(name) and not name.startswith(PINNING))
    return tuple(f"{name}={there[name]}" for name in counted)


def vbios(host: HostFacts) -> Seen:
    """By PCI device id; of GPUs of one model that differ, each version."""
    boards = known(host, lambda gpu: gpu.health.board.vbios, "version of the VBIOS")
    if isinstance(boards, NotApplicable):
        return boards
    device = {gpu.address: gpu.device for gpu in host.gpus}
    return tuple(sorted({f"{device[gpu.pci_address]}={has}" for gpu, has in boards if gpu.pci_address in device}))


def os(host: HostFacts) -> Seen:
    return (f"{host.os.id} {host.os.version_id}".strip(),) if host.os.id else ()


def kernel(host: HostFacts) -> Seen:
    return (host.kernel.release,) if host.kernel.release else ()


def ports(host: HostFacts) -> tuple[RdmaPort, ...] | NotApplicable:
    why = system(host)
    return NotApplicable(why) if why else rdma_ports(host)


def rate(port: RdmaPort) -> str | None:
    """ "400" of an active port at "400 Gb/sec (4X NDR)"; None for one that is down, or has no such number."""
    number = (port.rate or "").split(" ")[0]
    return number if port.state == "ACTIVE" and number.isascii() and number.isdigit() else None


def nics(host: HostFacts) -> Seen:
    """Active ports by their rate, ("8x400",); ("0",) where there are none."""
    found = ports(host)
    if isinstance(found, NotApplicable):
        return found
    if down := next((port for port in found if rate(port) is None), None):
        return NotApplicable(f"RDMA port {down.name} is not active")
    rates = Counter(filter(None, map(rate, found)))
    return tuple(f"{count}x{number}" for number, count in sorted(rates.items())) or ("0",)


def mig(host: HostFacts) -> Seen:
    """One layout for all GPUs, or one for each model of them."""
    modes = known(host, lambda gpu: gpu.mig_mode, "MIG mode")
    if isinstance(modes, NotApplicable):
        return modes
    listed = [gpu for gpu, _ in modes]
    if hidden := [gpu for gpu in listed if len(gpu.mig_profiles) < (gpu.health.use.mig_devices or 0)]:
        return NotApplicable(f"nvidia-smi -L does not name the instances of {named(hidden)}")
    if empty := [gpu for gpu in listed if gpu.mig_mode == "Enabled" and not gpu.mig_profiles]:
        return NotApplicable(f"{named(empty)} is in MIG mode without an instance")  # off is no MIG mode
    layouts = set(map(_layout, listed))
    if len(layouts) == 1:
        return (f"all={layouts.pop()}",)
    return tuple(_of_models(host, listed)) or NotApplicable("GPUs of one model are partitioned in different ways")


def _of_models(host: HostFacts, listed: list[SmiGpu]) -> Iterator[str]:
    """Nothing where two GPUs of one model differ, which no layout can say."""
    device = {gpu.address: gpu.device for gpu in host.gpus}
    pairs: Mapping[str, set[str]] = {id: set() for id in sorted(device.values())}
    for gpu in listed:
        if gpu.pci_address in device:
            pairs[device[gpu.pci_address]].add(_layout(gpu))
    if all(len(layouts) <= 1 for layouts in pairs.values()):
        yield from (f"{id}={next(iter(layouts))}" for id, layouts in pairs.items() if layouts)


def _layout(gpu: SmiGpu) -> str:
    return ",".join(f"{name}:{count}" for name, count in sorted(Counter(gpu.mig_profiles).items())) or "off"
