"""The findings of a fleet as the page's data: what several hosts have alike is there once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from gpunode.model.report import CheckReport, CheckResult, Finding
from gpunode.render.check_values import own_words, standing
from gpunode.render.matrix.texts import CELL, SENTENCE, Texts
from gpunode.render.remedy_text import remedy_text


class Shown(NamedTuple):
    """One finding as a host's page has it."""

    result: CheckResult
    severity: str  # with all that follows from it; "acknowledged"
    remedy: str
    follow: tuple[tuple[str, str], ...]  # ("rt.docker-live", "the running dockerd has no nvidia runtime")


def of_host(check: CheckReport, names: tuple[str, ...]) -> Iterable[Shown]:
    """Causes, worst first, then what was accepted. `names`: the host, where remedies are typed over SSH."""
    for cause in check.causes:
        follow = tuple(
            (one.id, one.outcome.summary) for one in check.consequences(cause) if isinstance(one.outcome, Finding)
        )
        yield Shown(cause, check.weight(cause).value, _remedy(cause, names), follow)
    for accepted in check.acknowledged:
        yield Shown(accepted, standing(accepted), _remedy(accepted, names), ())


def _remedy(result: CheckResult, names: tuple[str, ...]) -> str:
    return remedy_text(result.outcome.remedy, names) if isinstance(result.outcome, Finding) else ""


def finding_data(shown: Shown, texts: Texts) -> dict[str, Any]:
    finding, foreign = shown.result.outcome, shown.result.foreign
    assert isinstance(finding, Finding)
    notes = [*own_words(finding), *([("check of this site", foreign)] if foreign else [])]
    return {
        "id": texts.line(shown.result.id, CELL),
        "severity": shown.severity,
        "summary": texts.line(finding.summary, SENTENCE),
        "evidence": texts.prose(finding.evidence),
        "remedy": texts.prose(shown.remedy),
        "follow": [[texts.line(id, CELL), texts.line(summary, SENTENCE)] for id, summary in shown.follow],
        "notes": [[label, texts.line(text, SENTENCE)] for label, text in notes],
    }


class Distinct:
    """Findings that several hosts have alike are one."""

    def __init__(self) -> None:
        self.all: list[Shown] = []
        self._places: dict[Hashable, int] = {}

    def place(self, shown: Shown) -> int:
        """Where in `all` it is."""
        finding = shown.result.outcome
        assert isinstance(finding, Finding)
        told = (finding.summary, finding.evidence, *own_words(finding))
        alike = (shown.result.id, shown.result.foreign, told, *shown[1:])
        if alike not in self._places:
            self._places[alike] = len(self.all)
            self.all.append(shown)
        return self._places[alike]
