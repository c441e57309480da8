"""GPUs and architectures: what a PCI device id stands for, listed or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from gpunode.catalog.rows import GRADES, Row, rows
from gpunode.model.driver import Grade
from gpunode.values import dataclass

CardFlavour = Literal["proprietary", "either", "open"]  # which kernel modules drive it
FLAVOURS: tuple[CardFlavour, ...] = get_args(CardFlavour)
Fabric = Literal["nvswitch", "nvlink5", "imex"]
FABRICS: tuple[Fabric, ...] = get_args(Fabric)
FIRST_WITH_GSP = "turing"  # from here on open modules exist; ids below its own are those of older GPUs
UNKNOWN_OLDER, UNKNOWN_NEWER = "unknown-older", "unknown-newer"  # rows of `unlisted` in architectures.yaml


@dataclass(frozen=True)
class Block:
    """PCI device ids of one chip."""

    first: int
    last: int
    chip: str
    cc: str  # CUDA compute capability; "" where not published


@dataclass(frozen=True)
class Architecture:
    name: str  # "hopper"
    compute_capability: tuple[str, ...]
    flavour: CardFlavour
    first_branch: int
    last_branch: int | None  # None: current branches still drive it
    blocks: tuple[Block, ...]
    refused: str | None  # why gpunode installs no driver for it by itself
    opt_in: int | None  # the branch that may be asked for all the same
    source: str
    checked: str
    grade: Grade
    guess: bool = False  # stands in for GPUs that the catalog does not know

    @property
    def title(self) -> str:
        return "Unknown GPU" if self.guess else self.name.capitalize()


@dataclass(frozen=True)
class GpuModel:
    id: str  # PCI device id, "2330"
    name: str  # "H100 SXM5 80GB"
    architecture: str
    flavour: CardFlavour | None = None  # where the GPU differs from its architecture
    cc: str | None = None
    fabric: Fabric | None = None  # what the board may sit on
    first_branch: int | None = None  # where the GPU differs from its architecture
    last_branch: int | None = None
    mig: str | None = None  # its set in mig.yaml
    coherent: bool = False  # its memory is cache-coherent with the processor's (Grace)
    known: bool = True  # False: placed by its id block, or not at all
    source: str = ""
    checked: str = ""
    grade: str = ""


@dataclass(frozen=True)
class Switch:
    generation: int
    ids: tuple[str, ...]
    source: str
    checked: str
    grade: Grade


def model_in_blocks(device_id: str, architectures: Sequence[Architecture], guesses: Sequence[Architecture]) -> GpuModel:
    """An unlisted id: the architecture whose block holds it; in no block, a guess that is said to be one.

    NVIDIA's own driver assistant treats unknown ids as "open required" too. Below Turing's first block it is taken for
    an older GPU, so that no pre-Turing GPU is ever offered open modules.
    """
    number = int(device_id, 16)
    for architecture in architectures:
        for block in architecture.blocks:
            if block.first <= number <= block.last:
                name = f"{architecture.title} GPU 10de:{device_id} ({block.chip})"
                return GpuModel(device_id, name, architecture.name, cc=block.cc or None, known=False)
    gsp = next(a for a in architectures if a.name == FIRST_WITH_GSP)
    name = UNKNOWN_OLDER if number < min(block.first for block in gsp.blocks) else UNKNOWN_NEWER
    guess = next(a for a in guesses if a.name == name)
    return GpuModel(
        device_id,
        f"unknown GPU 10de:{device_id}",
        name,
        known=False,
        source=guess.source,
        checked=guess.checked,
        grade=guess.grade,
    )


def read_architectures() -> tuple[Architecture, ...]:
    return tuple(_architecture(row) for row in rows("architectures.yaml", "architectures", "name"))


def read_guesses() -> tuple[Architecture, ...]:
    """What stands in for GPUs that the catalog does not know: UNKNOWN_OLDER and UNKNOWN_NEWER."""
    return tuple(replace(_architecture(row), guess=True) for row in rows("architectures.yaml", "unlisted", "name"))


def read_switches() -> tuple[Switch, ...]:
    return tuple(
        Switch(row.number("generation"), row.texts("ids"), *row.provenance())
        for row in rows("architectures.yaml", "nvswitches", "generation")
    )


def _architecture(row: Row) -> Architecture:
    architecture = Architecture(
        row.text("name"),
        row.texts("compute_capability"),
        row.one_of("flavour", FLAVOURS),
        row.number("first_branch"),
        row.maybe_number("last_branch"),
        tuple(Block(int(first, 16), int(last, 16), chip, cc) for first, last, chip, cc in row.lists("blocks")),
        row.maybe_text("refused"),
        row.maybe_number("opt_in"),
        *row.provenance(),
    )
    row.done()
    return architecture


class GpuModels(Mapping[str, GpuModel]):
    """The listed GPUs by PCI device id. A line is parsed when its GPU is first asked for: a run asks for few of them,
    and for those of a fleet ten times a host.
    """

    def __init__(self, groups: Iterable[Row]) -> None:
        self._lines: dict[str, tuple[Row, str]] = {}
        self._parsed: dict[str, GpuModel] = {}
        for group in groups:
            for line in group.text("models").splitlines():
                device = line.partition(" ")[0]
                if device in self._lines:
                    raise group.fault(f"models.{device}", "it is listed twice")
                self._lines[device] = group, line

    def __getitem__(self, device_id: str) -> GpuModel:
        if (model := self._parsed.get(device_id)) is None:
            model = self._parsed[device_id] = _model(*self._lines[device_id])
        return model

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def read_models() -> GpuModels:
    return GpuModels(rows("gpus.yaml", "groups", "architecture"))


def _model(group: Row, line: str) -> GpuModel:
    """A GPU is what its group is; its name, and where all that is known from, are its own."""
    device, name, source, checked, grade = _fields(group, line)
    model = GpuModel(
        device,
        name,
        group.text("architecture"),
        group.maybe_one_of("flavour", FLAVOURS),
        group.maybe_text("cc"),
        group.maybe_one_of("fabric", FABRICS),
        group.maybe_number("first_branch"),
        group.maybe_number("last_branch"),
        group.maybe_text("mig"),
        group.maybe_flag("coherent"),
        source=source,
        checked=checked,
        grade=grade,
    )
    group.done()
    return model


def _fields(group: Row, line: str) -> list[str]:
    fields = line.split(" | ")
    if len(fields) == 5 and fields[2] and re.fullmatch(r"\d{4}-\d\d-\d\d", fields[3]) and fields[4] in GRADES:
        return fields
    raise group.fault("models", f"{line!r} is not ID | NAME | SOURCE | 2026-11-21 | {' or '.join(GRADES)}")
