"""How each engine's sections of the probe become facts: the readers, in the order in which engines are listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gpunode.facts.processes import Process
from gpunode.facts.wire import Sections
from gpunode.model.facts import RuntimeFacts

Units = Mapping[str, Mapping[str, str]]


class Reader(NamedTuple):
    """One or several engines that are seen together. `read` gets the processes of the host's own root."""

    sections: tuple[str, ...]  # how their names begin: their exit codes are part of the answer, and no fault
    read: Callable[[Sections, Units, tuple[Process, ...]], tuple[RuntimeFacts, ...]]


# Of engines that are registered in addition to the built-in ones (engines/registry.py).
ADDED: list[Reader] = []
