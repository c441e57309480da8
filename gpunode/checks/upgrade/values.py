"""What is judged, and what a judgement says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubernetes import KubeletTold
from gpunode.model.versions import Release, written
from gpunode.remedy import NO_REMEDY, Remedy

State = Literal["stops", "changes", "unknown"]
STATES: tuple[State, ...] = ("stops", "changes", "unknown")  # worst first


@dataclass(frozen=True)
class Upgrade:
    """A node, and the release that its kubelet is to be."""

    host: HostFacts
    name: str  # what runs the kubelet: "kubelet", "k3s"
    version: str | None  # "1.33.7"; None: not known
    now: Release | None  # of that version
    to: Release
    told: KubeletTold
    engines: tuple[RuntimeFacts, ...]  # those that may run its pods; () where `embedded`
    embedded: bool = False  # a distribution that brings kubelet and containerd itself

    def comes(self, since: tuple[int, ...]) -> bool:
        """The upgrade crosses it: not there yet today, or today's release is not known."""
        return since <= self.to and (self.now is None or self.now < since)

    def has(self, since: tuple[int, ...]) -> bool:
        """It holds of the release that is upgraded to, be it new or not."""
        return since <= self.to

    def already(self, since: Release) -> str:
        """For the evidence of what holds today as well; "" where it does not, or that is not known."""
        return f"; that holds of {self.name} {self.version} too" if self.now and self.now >= since else ""

    @property
    def later(self) -> str:
        """ "kubelet 1.38"."""
        return f"{self.name} {written(self.to)}"


@dataclass(frozen=True)
class Effect:
    """One thing that stops the kubelet at the upgrade, changes it, or is not known."""

    state: State
    kind: str  # "feature-gate"
    summary: str
    evidence: str
    since: Release | None = None  # the first release of which it is so; None: not known
    remedy: Remedy = NO_REMEDY
    source: str = ""  # where the rule is written; "" of what is not known


@dataclass(frozen=True)
class Note:
    """What to bear in mind, whatever was found."""

    says: str
    source: str = ""


@dataclass(frozen=True)
class Preflight:
    """All of it for one node."""

    upgrade: Upgrade
    effects: tuple[Effect, ...]  # worst first
    notes: tuple[Note, ...]

    def count(self, state: State) -> int:
        return sum(one.state == state for one in self.effects)


Judgement = Callable[[Upgrade], Iterator[Effect]]
