"""PCI functions of NVIDIA that are no GPUs, as catalog/functions.yaml lists them."""

from __future__ import annotations

from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.driver import Grade
from gpunode.values import dataclass


@dataclass(frozen=True)
class PciFunction:
    id: str  # PCI device id, "22ba"
    name: str  # "AD102 High Definition Audio Controller"
    kind: str  # "audio controller"
    source: str
    checked: str
    grade: Grade


@dataclass(frozen=True)
class FunctionKind:
    """Functions of one kind."""

    kind: str  # "audio controller"
    class_code: str | None  # "0403": names the kind of an id that is not listed; None: the class does not tell
    functions: tuple[PciFunction, ...]


@cache
def function_kinds() -> tuple[FunctionKind, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(_kind(row) for row in rows("functions.yaml", "functions", "kind"))


def listed_function(device_id: str) -> PciFunction | None:
    """The function with this PCI device id; None when it is not listed."""
    return next((f for kind in function_kinds() for f in kind.functions if f.id == device_id), None)


def kind_of_class(class_code: str) -> str | None:
    """ "audio controller" of 0403; None where the class does not tell."""
    return next((kind.kind for kind in function_kinds() if kind.class_code == class_code), None)


def _kind(row: Row) -> FunctionKind:
    kind, provenance = row.text("kind"), row.provenance()
    pairs = [line.split(" ", 1) for line in row.text("ids").splitlines()]
    found = FunctionKind(
        kind, row.maybe_text("class"), tuple(PciFunction(id, name, kind, *provenance) for id, name in pairs)
    )
    row.done()
    return found
