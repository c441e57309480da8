"""A node's labels from its facts, by the names of NVIDIA's GPU feature discovery, as `nvidia.com/gpu.product`.

Names and values are those of k8s-device-plugin 0.20.0, internal/lm. What the facts do not say is left out with its
reason: a pod that selects by a label waits for ever where its value is a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from gpunode.catalog.load import Catalog
from gpunode.catalog.versions import first_with
from gpunode.kubernetes.label_sharing import Share, Unknown, config_in_force, share_of
from gpunode.kubernetes.label_values import product_value
from gpunode.kubernetes.mig_labels import MigStrategy, mig_labels
from gpunode.model.facts import HostFacts
from gpunode.model.smi import SmiGpu
from gpunode.model.versions import Release, driver_numbers
from gpunode.values import dataclass

ALPHA_NAME = "alpha.kubernetes.io/nvidia-gpu-name"
_MODES = {"0300": "graphics", "0302": "compute"}  # PCI class: a VGA controller, a 3D controller
_FAMILIES = {1: "tesla", 2: "fermi", 3: "kepler", 5: "maxwell", 6: "pascal", 9: "hopper"}
_FAMILIES |= {10: "blackwell", 12: "blackwell", 13: "rubin"}  # 11 is Jetson's, which feature discovery does not name
_DRIVER = tuple(f"cuda.driver-version.{part}" for part in ("major", "minor", "revision", "full"))
# Deprecated since 0.16, and still what older pods select by.
_OLD_DRIVER = tuple(f"cuda.driver.{part}" for part in ("major", "minor", "rev"))
_CUDA = ("cuda.runtime-version.major", "cuda.runtime-version.minor", "cuda.runtime-version.full")
_OLD_CUDA = ("cuda.runtime.major", "cuda.runtime.minor")
_SHARING = ("gpu.replicas", "gpu.sharing-strategy", "mps.capable")


@dataclass(frozen=True)
class NodeLabels:
    values: Mapping[str, str]  # "nvidia.com/gpu.count" -> "8", sorted by name
    left_out: Mapping[str, str]  # a name, or "nvidia.com/mig-*" for all that begin so -> why it has no value

    def why_unknown(self, name: str) -> str | None:
        """None for a label that holds, or is known not to."""
        wide = (why for key, why in self.left_out.items() if key.endswith("*") and name.startswith(key[:-1]))
        return self.left_out.get(name) or next(wide, None)


class _Found:
    """Values and reasons as they are found; the last word on a name counts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    def has(self, name: str, value: str) -> None:
        self.values[f"nvidia.com/{name}"] = value

    def lacks(self, names: str | Sequence[str], why: str) -> None:
        """Every name that the fact would have given: one that is forgotten counts as no longer true."""
        for name in (names,) if isinstance(names, str) else names:
            self.values.pop(f"nvidia.com/{name}", None)
            self.left_out[f"nvidia.com/{name}"] = why


def node_labels(
    host: HostFacts, catalog: Catalog, *, mig_strategy: MigStrategy = "none", kubernetes: Release | None = None
) -> NodeLabels:
    """No values for a host without GPUs. `kubernetes`: the kubelet's release; None: one that is not old."""
    found = _Found()
    gpus = _named(host)
    if not gpus and not host.gpus:
        return NodeLabels({}, {"nvidia.com/gpu.present": "there is no NVIDIA GPU"})
    found.has("gpu.present", "true")
    if host.product:
        found.has("gpu.machine", product_value(host.product))
    else:
        found.lacks("gpu.machine", "the firmware's name of the machine is not known")
    _versions(host, found)
    _mode(host, found)
    _architecture(host, catalog, gpus, found)
    _capable(host, catalog, found)
    _vgpu(host, found)
    _product(host, gpus, found)
    _sharing(host, gpus, found, whole=mig_strategy != "single")
    for name, value in mig_labels(host.driver.smi, gpus, mig_strategy, config_in_force(host)).items():
        found.has(name, value) if isinstance(value, str) else found.lacks(name, value.reason)
    if not gpus or not (host.driver.smi and host.driver.smi.answered):
        _unseen_instances(host, mig_strategy, found)
    if kubernetes and kubernetes < first_with("kubelet", "refuses-node-labels")[:2]:
        if gpus:
            found.values[ALPHA_NAME] = product_value(gpus[0].name)
        else:
            found.left_out[ALPHA_NAME] = _silent(host)
    return NodeLabels(dict(sorted(found.values.items())), dict(sorted(found.left_out.items())))


def _named(host: HostFacts) -> tuple[SmiGpu, ...]:
    """The GPUs of the model that most of them are, of which the labels speak: a label has room for one."""
    gpus = tuple(gpu for gpu in host.driver.smi.gpus if gpu.name) if host.driver.smi else ()
    (name, _), *_ = Counter(gpu.name for gpu in gpus).most_common(1) or [("", 0)]
    return tuple(gpu for gpu in gpus if gpu.name == name)


def _unseen_instances(host: HostFacts, strategy: MigStrategy, found: _Found) -> None:
    """Their names are not known either: of a profile nobody told."""
    if strategy == "mixed":
        found.lacks("mig-*", _silent(host))
    elif strategy == "single":
        found.lacks("gpu.slices.*", _silent(host))


def _silent(host: HostFacts) -> str:
    return f"nvidia-smi did not say ({host.unread.get('smi', 'it listed no GPU')})"


def _versions(host: HostFacts, found: _Found) -> None:
    version = (host.driver.smi.driver_version if host.driver.smi else None) or host.driver.loaded
    if version and driver_numbers(version):
        numbers = (*version.split("."), "")[:3]
        for name, value in zip((*_DRIVER, *_OLD_DRIVER), (*numbers, version, *numbers), strict=True):
            found.has(name, value)
    else:
        found.lacks((*_DRIVER, *_OLD_DRIVER), "no driver is loaded")
    cuda = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", (host.driver.smi and host.driver.smi.cuda_version) or "", re.A)
    if cuda is None:
        return found.lacks((*_CUDA, *_OLD_CUDA), _silent(host))
    for name, value in zip((*_CUDA, *_OLD_CUDA), (cuda[1], cuda[2], cuda[0], cuda[1], cuda[2]), strict=True):
        found.has(name, value)
    return None


def _mode(host: HostFacts, found: _Found) -> None:
    classes = {device.class_code for device in host.gpus}
    if classes:
        found.has("gpu.mode", _MODES.get(classes.pop(), "unknown") if len(classes) == 1 else "unknown")
    else:
        found.lacks("gpu.mode", "the PCI bus shows no GPU")


def _architecture(host: HostFacts, catalog: Catalog, gpus: tuple[SmiGpu, ...], found: _Found) -> None:
    capability = _capability(host, catalog, gpus)
    if capability is None:
        names = ("gpu.family", "gpu.compute.major", "gpu.compute.minor")
        return found.lacks(names, "the catalog does not say what these GPUs compute with")
    major, minor = capability
    found.has("gpu.compute.major", str(major))
    found.has("gpu.compute.minor", str(minor))
    if family := _family(major, minor):
        return found.has("gpu.family", family)
    return found.lacks("gpu.family", f"GPU feature discovery has no name for compute capability {major}.{minor}")


def _capability(host: HostFacts, catalog: Catalog, gpus: tuple[SmiGpu, ...]) -> tuple[int, int] | None:
    """Of the GPUs that are meant; None where it is not known, or theirs differ."""
    places = {gpu.pci_address for gpu in gpus}
    found = set()
    for device in (d for d in host.gpus if d.address in places or not places):
        model = catalog.gpu_model(device.device)
        capabilities = (model.cc,) if model.cc else catalog.architecture(model.architecture).compute_capability
        if len(capabilities) != 1 or catalog.guessed(model):
            return None
        found.add(capabilities[0])
    if len(found) != 1:
        return None
    major, _, minor = found.pop().partition(".")
    return int(major), int(minor)


def _family(major: int, minor: int) -> str | None:
    if major == 7:
        return "volta" if minor < 5 else "turing"
    if major == 8:
        return "ampere" if minor < 9 else "ada-lovelace"
    return _FAMILIES.get(major)


def _capable(host: HostFacts, catalog: Catalog, found: _Found) -> None:
    smi = host.driver.smi
    modes = [gpu.mig_mode for gpu in smi.gpus] if smi else []
    if any(modes) or any(catalog.mig(device.device) for device in host.gpus):
        found.has("mig.capable", "true")
    elif (smi and smi.answered) or all(catalog.gpu_model(device.device).known for device in host.gpus):
        found.has("mig.capable", "false")
    else:
        found.lacks("mig.capable", _silent(host))


def _vgpu(host: HostFacts, found: _Found) -> None:
    shares = any(device.vgpu for device in host.gpus)
    if shares or host.virtualization is None:
        found.has("vgpu.present", str(shares).lower())
    else:
        found.lacks("vgpu.present", "in a virtual machine a GPU that shows no sign of it may be a share all the same")


def _product(host: HostFacts, gpus: tuple[SmiGpu, ...], found: _Found) -> None:
    if not gpus:
        found.lacks(("gpu.product", "gpu.count", "gpu.memory"), _silent(host))
        return
    found.has("gpu.product", product_value(gpus[0].name))
    found.has("gpu.count", str(len(gpus)))
    if size := gpus[-1].memory_total_bytes:
        found.has("gpu.memory", str(size >> 20))
    else:
        found.lacks("gpu.memory", "nvidia-smi gives no size: its memory is the machine's, or it cannot be read")


def _sharing(host: HostFacts, gpus: tuple[SmiGpu, ...], found: _Found, *, whole: bool) -> None:
    """What the device plugin's configuration decides, where its plugin is there and has one at most.

    `whole`: nvidia.com/gpu means whole GPUs, and partitioned ones are then never shared (replicas 0).
    """
    share = share_of(config_in_force(host), "gpu")
    if isinstance(share, Unknown):
        return found.lacks(_SHARING, share.reason)
    if whole and gpus and all(gpu.mig_mode == "Enabled" for gpu in gpus):
        share = Share(0)
    found.has("gpu.replicas", str(share.replicas))
    found.has("gpu.sharing-strategy", share.strategy)
    found.has("mps.capable", str(share.strategy == "mps").lower())
    if gpus:
        found.has("gpu.product", share.product(product_value(gpus[0].name)))
    return None
