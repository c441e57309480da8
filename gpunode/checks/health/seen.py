"""The GPUs as nvidia-smi lists them, and how a finding about one names and quotes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.model import entities
from gpunode.model.entities import Entity
from gpunode.model.facts import HostFacts
from gpunode.model.report import NotApplicable
from gpunode.model.smi import SmiGpu

_T = TypeVar("_T")
UNLISTED = NotApplicable("nvidia-smi did not list the GPUs (user.smi-works)")
SMI = (needs.gpu, needs.host_driver, needs.smi_ran)
READS = "{} in nvidia-smi -q -x"


def known(host: HostFacts, read: Callable[[SmiGpu], _T | None], what: str) -> list[tuple[SmiGpu, _T]] | NotApplicable:
    """(GPU, value) of every GPU that has this value; where none has, why. `what` names it in the reason."""
    smi = host.driver.smi
    if smi is None or not smi.gpus or not smi.answered:
        return UNLISTED
    values = [(gpu, value) for gpu in smi.gpus if (value := read(gpu)) is not None]
    return values or NotApplicable(f"nvidia-smi gives no {what} of {named(smi.gpus)}")


def flagged(host: HostFacts, read: Callable[[SmiGpu], bool | None], what: str) -> list[SmiGpu] | NotApplicable | None:
    """The GPUs for which this is true; None where it is false for all that nvidia-smi says it of."""
    values = known(host, read, what)
    return values if isinstance(values, NotApplicable) else [gpu for gpu, true in values if true] or None


def unlike(values: Iterable[tuple[SmiGpu, object]]) -> list[SmiGpu]:
    """The GPUs whose value is not the one that most of their model have; of two halves the later one."""
    all_values = list(values)
    counts = Counter((gpu.name, value) for gpu, value in all_values)
    usual: dict[str, object] = {}
    for (name, value), _ in counts.most_common():
        usual.setdefault(name, value)
    return [gpu for gpu, value in all_values if value != usual[gpu.name]]


def address(gpu: SmiGpu) -> str:
    return gpu.pci_address or str(gpu.index)


def named(gpus: Iterable[SmiGpu]) -> str:
    return listing(gpu.pci_address or f"GPU {gpu.index}" for gpu in gpus)


def about(gpus: Iterable[SmiGpu]) -> tuple[Entity, ...]:
    """The addresses and UUIDs of GPUs, for a finding's `entities`; a lost one may have no UUID."""
    of = list(gpus)
    addresses, uuids = filter(None, (gpu.pci_address for gpu in of)), filter(None, (gpu.uuid for gpu in of))
    return (*entities.pci(*addresses), *entities.gpu(*uuids))


def quoted(gpu: SmiGpu, says: str) -> str:
    return f"nvidia-smi -q -x, {named([gpu])}: {says}"


def reset(gpu: SmiGpu) -> str:
    """What resets it, as a sentence."""
    command = typed("nvidia-smi", "--gpu-reset", "-i", address(gpu))
    return f"stop all that runs on it, then {command}; reboot where the reset is refused"


def is_laptop(gpu: SmiGpu) -> bool:
    """Its power supply, battery and fans hold its clocks down as a matter of course."""
    return "Laptop GPU" in gpu.name or "Max-Q" in gpu.name
