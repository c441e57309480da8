"""Containers and pods that need what gpunode added to an engine. Values only."""

from __future__ import annotations

from typing import Literal

from gpunode.values import dataclass

# handler: it names the runtime handler, without which it does not start again (a pod: cannot be stopped); cdi: it asks
# for a CDI device of NVIDIA's; gpus: it was made with --gpus; program: it runs by NVIDIA's program, without which
# nobody can exec into it or end it.
Need = Literal["handler", "cdi", "gpus", "program"]


@dataclass(frozen=True)
class Container:
    engine: str  # RuntimeFacts.label of whose list it is in; "" for one that was seen as a process
    need: Need
    id: str
    name: str  # "web"; of a pod "default/train-0"
