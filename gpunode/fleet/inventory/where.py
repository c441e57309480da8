"""`--where KEY=VALUE`: of the hosts that were named, those whose facts say so. Repeated it means and."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.advice import listing, meant
from gpunode.catalog.load import load_catalog
from gpunode.errors import UsageError
from gpunode.facts.collect import collect
from gpunode.fleet.inventory.facts import FACTS, NONE
from gpunode.model.facts import HostFacts
from gpunode.transport.kept_answer import KeptAnswer
from gpunode.values import dataclass


@dataclass(frozen=True)
class Condition:
    key: str  # of FACTS
    value: str  # in lower case

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Raises UsageError that lists the keys, or the values."""
        key, equals, value = (part.strip().lower() for part in text.partition("="))
        if key not in FACTS or not equals:
            raise UsageError(
                f"--where {text[:80]!r} " + ("asks for no fact that is known" if equals else "has no value"),
                evidence=f"{meant(key, FACTS)}the keys are {', '.join(FACTS)}",
                remedy="its form is KEY=VALUE, for example --where gpu.arch=blackwell",
            )
        fact, choices = FACTS[key], FACTS[key].choices()
        if not re.fullmatch(fact.pattern, value, re.ASCII) or (choices and value not in choices):
            raise UsageError(
                f"--where {key}={value[:80]!r} is no value of that fact",
                evidence=f"{meant(value, choices)}it is {fact.about}: {', '.join(choices) or fact.form}",
                remedy="correct it",
            )
        return cls(key, value)

    def against(self, host: HostFacts) -> str:
        """Why the host is left out; "" where it is not."""
        fact = FACTS[self.key]
        seen = fact.seen(host, load_catalog())
        if seen is None:
            return f"{self.key} is not known"
        if not seen:
            return "" if self.value == NONE else f"{self.key} is none"
        if any(fact.matches(one, self.value) for one in seen):
            return ""
        return f"{self.key} is {listing(seen)}"


def parse_where(values: Sequence[str]) -> tuple[Condition, ...]:
    """Raises UsageError for the first that is wrong, and for two values of a fact of which a host has one."""
    found = tuple(dict.fromkeys(Condition.parse(value) for value in values))
    for place, one in enumerate(found):
        if other := next((two for two in found[:place] if two.key == one.key and one.key in _SINGLE), None):
            raise UsageError(
                f"--where {one.key} is both {other.value} and {one.value}",
                evidence="repeated it means and, and a host has one of them",
                remedy="ask for one of them",
            )
    return found


_SINGLE = ("gpu.count", "os.id", "os.machine", "driver.branch", "driver.module-type")


class FactFilter:
    """Whether one host is left out. It is asked once in a run: setup itself may change what it was asked by."""

    def __init__(self, conditions: Sequence[Condition], transport: KeptAnswer) -> None:
        self._conditions, self._transport = conditions, transport
        self._why: str | None = None

    def left_out(self) -> str:
        """Why; "" where it is not. Raises what `collect` raises, and asks anew the next time."""
        if self._why is None:
            with self._transport.keeping():
                host = collect(self._transport)
            self._why = next(filter(None, (one.against(host) for one in self._conditions)), "")
        return self._why
