"""GPUs and architectures: what a PCI device id stands for, listed or not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gpunode.catalog.rows import GRADES, Row, rows
from gpunode.model.driver import Grade

CardFlavour = Literal["proprietary", "either", "open"]  # which kernel modules drive it
FLAVOURS: tuple[CardFlavour, ...] = get_args(CardFlavour)
Fabric = Literal["nvswitch", "nvlink5", "imex"]
FABRICS: tuple[Fabric, ...] = get_args(Fabric)
FIRST_WITH_GSP = "turing"  # from here on open modules exist, so an unlisted newer id is taken for an open-only GPU


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

    @property
    def title(self) -> str:
        return self.name.capitalize()


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
    known: bool = True  # False: placed by its id block
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


def model_in_blocks(device_id: str, architectures: Sequence[Architecture]) -> GpuModel:
    """An unlisted id: the architecture whose block holds it; above or between the newer blocks, the newest one.

    NVIDIA's own driver assistant treats unknown ids as "open required" too. Below Turing's first block the nearest
    older architecture answers, so that no pre-Turing GPU is ever offered open modules.
    """
    number = int(device_id, 16)
    for architecture in architectures:
        for block in architecture.blocks:
            if block.first <= number <= block.last:
                name = f"{architecture.title} GPU 10de:{device_id} ({block.chip})"
                return GpuModel(device_id, name, architecture.name, cc=block.cc or None, known=False)
    gsp = next(a for a in architectures if a.name == FIRST_WITH_GSP)
    if number > min(block.first for block in gsp.blocks):
        newest = architectures[-1]
        return GpuModel(device_id, f"unknown GPU 10de:{device_id}", newest.name, flavour="open", known=False)
    below = [(block.first, a) for a in architectures for block in a.blocks if block.first <= number]
    nearest = max(below, key=lambda pair: pair[0])[1] if below else architectures[0]
    return GpuModel(device_id, f"unknown GPU 10de:{device_id}", nearest.name, known=False)


def read_architectures() -> tuple[Architecture, ...]:
    return tuple(_architecture(row) for row in rows("architectures.yaml", "architectures", "name"))


def read_switches() -> tuple[Switch, ...]:
    return tuple(
        Switch(row.number("generation"), row.texts("ids"), *row.provenance())
        for row in rows("architectures.yaml", "nvswitches", "generation")
    )


def read_models() -> tuple[GpuModel, ...]:
    return tuple(model for row in rows("gpus.yaml", "groups", "architecture") for model in _models(row))


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


def _models(row: Row) -> Iterator[GpuModel]:
    """The GPUs of one group, which share what they are; where it is known from is each GPU's own."""
    flavour, fabric = row.maybe_one_of("flavour", FLAVOURS), row.maybe_one_of("fabric", FABRICS)
    architecture, cc, mig = row.text("architecture"), row.maybe_text("cc"), row.maybe_text("mig")
    first, last = row.maybe_number("first_branch"), row.maybe_number("last_branch")
    coherent = row.maybe_flag("coherent")
    named = row.mapping("models")
    row.done()
    for device, line in named.items():
        name, source, checked, grade = _line(row, device, line)
        yield GpuModel(
            device, name, architecture, flavour, cc, fabric, first, last, mig, coherent,
            source=source, checked=checked, grade=grade,
        )  # fmt: skip


def _line(row: Row, device: str, line: str) -> list[str]:
    """[name, source, checked, grade]. One text a GPU, since a mapping each takes YAML ten times as long to read."""
    fields = line.split(" | ")
    if len(fields) == 4 and fields[1] and re.fullmatch(r"\d{4}-\d\d-\d\d", fields[2]) and fields[3] in GRADES:
        return fields
    raise row.fault(f"GPUs.{device}", f"{line!r} is not NAME | SOURCE | 2026-11-21 | {' or '.join(GRADES)}")
