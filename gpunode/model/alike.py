"""What the hosts of a fleet have alike, held once: the results of checks, which most hosts have the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from dataclasses import replace
from typing import TypeVar

from gpunode.model.report import CheckReport, CheckResult

Part = TypeVar("Part")


class Results(Mapping[str, CheckResult]):
    """A report's results by their ids. A dict of them takes ten kilobytes a host; this takes two."""

    __slots__ = ("_places", "_results")

    def __init__(self, places: Mapping[str, int], results: tuple[CheckResult, ...]) -> None:
        """`places`: of each id in `results`, in order; hosts with the same checks share it."""
        self._places, self._results = places, results

    def __getitem__(self, id: str) -> CheckResult:
        return self._results[self._places[id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._results)

    def values(self) -> ValuesView[CheckResult]:
        """In order, and none of them is looked for by its id."""
        return _Values(self, self._results)


class _Values(ValuesView[CheckResult]):
    def __init__(self, results: Results, values: tuple[CheckResult, ...]) -> None:
        super().__init__(results)
        self._values = values

    def __iter__(self) -> Iterator[CheckResult]:
        return iter(self._values)


class Alike:
    """For any thread: two that meet at a new part hold it twice, and no more. It holds what its reports hold."""

    def __init__(self) -> None:
        self._parts: dict[object, object] = {}
        self._held: dict[int, CheckResult] = {}  # by id(): one that is held already is not compared again
        self._places: dict[tuple[str, ...], dict[str, int]] = {}

    def report(self, report: CheckReport) -> CheckReport:
        """An equal report; of the facts that it was made of, only what kind of host that is."""
        ids, held = tuple(report.results), self._held  # what has its id() there is the very same: it is held
        if (places := self._places.get(ids)) is None:
            places = self._places[ids] = {id: place for place, id in enumerate(ids)}
        return replace(
            report,
            results=Results(places, tuple([held.get(id(one)) or self._shared(one) for one in report.results.values()])),
            facts=None,
            profile=self.shared(report.profile),
            traits=report.host,
        )

    def shared(self, part: Part) -> Part:
        """An equal one. Raises TypeError for what has no hash."""
        found: Part = self._parts.setdefault(part, part)  # type: ignore[assignment]
        return found

    def _shared(self, result: CheckResult) -> CheckResult:
        held, _ = self.shared((result, result.evidence))  # results that differ in their evidence are equal
        self._held[id(held)] = held
        return held
