"""What the page says of a host's facts, read as soon as the host has ended: none are held until all have."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from gpunode.catalog.load import load_catalog
from gpunode.model.facts import HostFacts
from gpunode.render.matrix.columns import COLUMNS, GROUPINGS
from gpunode.render.matrix.readings import Cell, Seen


class Sight(NamedTuple):
    """Hosts that are alike have equal ones."""

    cells: tuple[Cell | None, ...]  # of each column; None: not known, or read from the checks
    groups: tuple[str | None, ...]  # of each grouping; None: it is in none


class Eye:
    """Asks the catalog once for each thing that it names: a fleet has few of them. For any thread."""

    def __init__(self) -> None:
        self._model = cache(lambda device: load_catalog().gpu_model(device).name)
        self._distro = cache(load_catalog().distro)

    def sight(self, facts: HostFacts) -> Sight:
        distro = self._distro(facts.os)
        system = distro.name if distro else facts.os.pretty_name or facts.os.id
        seen = Seen(facts, tuple(self._model(gpu.device) for gpu in facts.gpus), system)
        return Sight(
            tuple(column.read and column.read(seen) for column in COLUMNS),
            tuple(grouping.read(seen) for grouping in GROUPINGS),
        )
