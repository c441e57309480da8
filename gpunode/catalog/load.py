"""The typed catalog: what vendors publish about GPUs, branches, distributions and the container toolkit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Literal, get_args

from gpunode.catalog.distros import Distro, read_distros
from gpunode.catalog.documents import document
from gpunode.catalog.functions import PciFunction, kind_of_class, listed_function
from gpunode.catalog.gpus import (
    Architecture,
    CardFlavour,
    GpuModel,
    Switch,
    model_in_blocks,
    read_architectures,
    read_guesses,
    read_models,
    read_switches,
)
from gpunode.catalog.libraries import Cuda, Image, MigSet, read_cuda, read_images, read_mig
from gpunode.catalog.rows import Row, rows
from gpunode.catalog.systems import OwnSystem, read_systems
from gpunode.model.driver import BranchKind, BranchStatus, Grade, ModuleFlavour
from gpunode.model.facts import GPU_CLASSES, NVIDIA_VENDOR, HostFacts, OsFacts, PciDevice
from gpunode.values import dataclass

DefaultKind = Literal["current", "legacy"]
DEFAULTS: tuple[DefaultKind, ...] = get_args(DefaultKind)
MODULES: tuple[ModuleFlavour, ...] = get_args(ModuleFlavour)
KINDS: tuple[BranchKind, ...] = get_args(BranchKind)
STATUSES: tuple[BranchStatus, ...] = get_args(BranchStatus)


@dataclass(frozen=True)
class Branch:
    number: int
    kind: BranchKind
    status: BranchStatus
    end: str | None  # month in which support ends, "2027-03"
    cuda: str | None  # newest CUDA the driver runs, "13.2"
    latest: str | None  # newest point release seen
    packaged: str | None  # newest one seen in NVIDIA's package repositories, where `latest` is newer
    open: bool  # has open modules
    open_only: bool  # proprietary modules are not packaged any more
    source: str
    checked: str
    grade: Grade

    @property
    def installable(self) -> str | None:
        """The newest point release that a package source is known to have; None: none was seen."""
        return self.packaged or self.latest

    @property
    def title(self) -> str:
        words = {
            "production": "production branch",
            "lts": "LTS branch",
            "feature": "new feature branch",
            "legacy": "legacy branch",
        }
        return words.get(self.kind, "branch of unknown kind")


@dataclass(frozen=True)
class Default:
    """What `--driver auto` means for a box: "current" (Turing and newer) or "legacy" (an older GPU is in it)."""

    kind: DefaultKind
    branch: int
    flavour: ModuleFlavour
    source: str
    checked: str
    grade: Grade


@dataclass(frozen=True)
class Toolkit:
    latest: str  # "1.20.0"
    floor: str  # oldest version that is not replaced
    floor_cve: str  # what every older one has
    packages: tuple[str, ...]
    replaces: tuple[str, ...]
    package_release: str  # "-1": appended to a version
    key_url: str
    fingerprint: str
    apt_url: str  # {channel}
    rpm_url: str
    source: str
    checked: str
    grade: Grade


@dataclass(frozen=True)
class Catalog:
    models: Mapping[str, GpuModel]  # by PCI device id; GPUs that are not listed are placed by their blocks
    architectures: tuple[Architecture, ...]  # oldest first
    guesses: tuple[Architecture, ...]  # for GPUs that are neither listed nor in a block
    switches: tuple[Switch, ...]
    branches: tuple[Branch, ...]
    defaults: tuple[Default, ...]
    distros: tuple[Distro, ...]
    toolkit: Toolkit

    @cached_property
    def cuda(self) -> Cuda:
        """Read when it is asked for: most runs do not."""
        return read_cuda()

    @cached_property
    def mig_sets(self) -> tuple[MigSet, ...]:
        return read_mig()

    @cached_property
    def images(self) -> tuple[Image, ...]:
        return read_images()

    @cached_property
    def systems(self) -> tuple[OwnSystem, ...]:
        return read_systems()

    def gpu_model(self, device_id: str) -> GpuModel:
        """The GPU with this PCI device id ("2330"); `known` False: unlisted, so placed by its block, or not at all."""
        return self.models.get(device_id) or model_in_blocks(device_id, self.architectures, self.guesses)

    def architecture(self, name: str) -> Architecture:
        return next(a for a in (*self.architectures, *self.guesses) if a.name == name)

    def guessed(self, model: GpuModel) -> bool:
        """Whether all that the catalog has of this GPU is a guess: it is neither listed nor in a block of ids."""
        return self.architecture(model.architecture).guess

    def first_branch(self, model: GpuModel) -> int:
        return model.first_branch or self.architecture(model.architecture).first_branch

    def last_branch(self, model: GpuModel) -> int | None:
        """None: current branches still drive it."""
        return model.last_branch or self.architecture(model.architecture).last_branch

    def flavour(self, model: GpuModel) -> CardFlavour:
        """ "open" | "proprietary" | "either": which kernel modules drive it"""
        return model.flavour or self.architecture(model.architecture).flavour

    def mig(self, device_id: str) -> MigSet | None:
        """What this GPU can be partitioned into; None: it has no MIG, or its profiles are not listed."""
        return next((s for s in self.mig_sets if device_id in s.ids), None)

    def branch(self, number: int) -> Branch | None:
        return next((b for b in self.branches if b.number == number), None)

    def default(self, kind: DefaultKind) -> Default:
        return next(d for d in self.defaults if d.kind == kind)

    def distro(self, os: OsFacts) -> Distro | None:
        """The row that stands for this operating system, None when gpunode has none."""
        return next((d for d in self.distros if d.matches(os)), None)

    def function(self, device_id: str) -> PciFunction | None:
        """What this PCI device id stands for that is no GPU, such as a GPU's audio controller; None: not listed."""
        switch = next((s for s in self.switches if device_id in s.ids), None)
        if (listed := listed_function(device_id)) or switch is None:
            return listed
        name = f"NVSwitch of generation {switch.generation}"
        return PciFunction(device_id, name, "NVSwitch", switch.source, switch.checked, switch.grade)

    def device_name(self, device: PciDevice) -> str | None:
        """What a device of NVIDIA's is, by its PCI class first: an id names a GPU only where the class is a GPU's."""
        if device.vendor != NVIDIA_VENDOR:
            return None
        if device.class_code in GPU_CLASSES:
            model = self.models.get(device.device)
            return model.name if model else _lspci_name(device) or self.gpu_model(device.device).name
        if function := self.function(device.device):
            return function.name
        kind = kind_of_class(device.class_code)
        return _lspci_name(device) or (f"{kind} 10de:{device.device}" if kind else None)

    def is_nvswitch(self, device: PciDevice) -> bool:
        return device.class_code == "0680" and any(device.device in s.ids for s in self.switches)

    def nvswitches(self, host: HostFacts) -> tuple[PciDevice, ...]:
        return tuple(d for d in host.pci if d.vendor == "10de" and self.is_nvswitch(d))


def _lspci_name(device: PciDevice) -> str | None:
    """None also for "Device", which lspci prints of an id that its own list does not have."""
    return None if device.name == "Device" else device.name


@cache
def load_catalog() -> Catalog:
    """Read once a process. Raises UsageError that names file, row, key and the allowed values."""
    return Catalog(
        models=read_models(),
        architectures=read_architectures(),
        guesses=read_guesses(),
        switches=read_switches(),
        branches=tuple(_branch(row) for row in rows("branches.yaml", "branches", "branch")),
        defaults=tuple(_default(row) for row in rows("branches.yaml", "defaults", "for")),
        distros=read_distros(),
        toolkit=_toolkit(Row("toolkit.yaml", "toolkit", document("toolkit.yaml").get("toolkit"))),
    )


def _branch(row: Row) -> Branch:
    branch = Branch(
        row.number("branch"),
        row.one_of("kind", KINDS),
        row.one_of("status", STATUSES),
        row.maybe_text("end"),
        row.maybe_text("cuda"),
        row.maybe_text("latest"),
        row.maybe_text("packaged"),
        row.flag("open"),
        row.flag("open_only"),
        *row.provenance(),
    )
    row.done()
    return branch


def _default(row: Row) -> Default:
    default = Default(
        row.one_of("for", DEFAULTS),
        row.number("branch"),
        row.one_of("flavour", MODULES),
        *row.provenance(),
    )
    row.done()
    return default


def _toolkit(row: Row) -> Toolkit:
    toolkit = Toolkit(
        row.text("latest"),
        row.text("floor"),
        row.text("floor_cve"),
        row.texts("packages"),
        row.texts("replaces"),
        row.text("package_release"),
        row.text("key_url"),
        row.text("fingerprint"),
        row.text("apt_url"),
        row.text("rpm_url"),
        *row.provenance(),
    )
    row.done()
    return toolkit
