"""What the hosts of a fleet have alike, held once: the results of checks, which most hosts have the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from dataclasses import replace
from typing import TypeVar

from gpunode.model.report import CheckReport, CheckResult

Part = TypeVar("Part")

_MOST_OWN = 16  # results that a host has otherwise than the one before it; a dict of more is as large as all of them


class Results(Mapping[str, CheckResult]):
    """A report's results by their ids. A dict of them takes ten kilobytes a host; this less than one."""

    __slots__ = ("_own", "_places", "_results")

    def __init__(
        self, places: Mapping[str, int], results: tuple[CheckResult, ...], own: Mapping[int, CheckResult]
    ) -> None:
        """`places`: of each id in `results`, in order; hosts with the same checks share both, but for `own`."""
        self._places, self._results, self._own = places, results, own

    def __getitem__(self, id: str) -> CheckResult:
        place = self._places[id]
        return self._own.get(place) or self._results[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._results)

    def values(self) -> ValuesView[CheckResult]:
        """In order, and none of them is looked for by its id."""
        results = list(self._results)
        for place, result in self._own.items():
            results[place] = result
        return _Values(self, tuple(results))


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
        self._last: dict[tuple[str, ...], tuple[CheckResult, ...]] = {}  # of some host with the same checks

    def report(self, report: CheckReport) -> CheckReport:
        """An equal report; of the facts that it was made of, only what kind of host that is."""
        ids, held = tuple(report.results), self._held  # what has its id() there is the very same: it is held
        if (places := self._places.get(ids)) is None:
            places = self._places[ids] = {id: place for place, id in enumerate(ids)}
        mine = tuple([held.get(id(one)) or self._shared(one) for one in report.results.values()])
        theirs = self._last.setdefault(ids, mine)
        own = {place: one for place, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one is not other}
        if len(own) > _MOST_OWN:
            theirs = self._last[ids] = mine
            own = {}
        return replace(
            report,
            results=Results(places, theirs, own),
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
