"""The parts of plans that many hosts have alike, held once: of a uniform fleet every file's text and diff."""

from __future__ import annotations

from dataclasses import replace

from gpunode.model.plan import Plan, Step

_OFTEN_ALIKE = ("spec", "driver", "kept", "answers")


class SharedParts:
    """For any thread: two that meet at a part keep it twice, and no more."""

    def __init__(self) -> None:
        self._seen: dict[object, object] = {}

    def plan(self, plan: Plan) -> Plan:
        """An equal plan."""
        parts = {name: self._shared(getattr(plan, name)) for name in _OFTEN_ALIKE}
        return replace(plan, steps=tuple(map(self._step, plan.steps)), **parts)  # type: ignore[arg-type]

    def _step(self, step: Step) -> Step:
        shared = self._shared(step)
        assert isinstance(shared, Step)
        return shared

    def _shared(self, part: object) -> object:
        return self._seen.setdefault(part, part)
