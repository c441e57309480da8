"""How a check of an expectation answers: nothing expected, not known, or what was wanted and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing
from gpunode.checks.registry import Context
from gpunode.model.entities import Entity
from gpunode.model.report import Finding, NotApplicable
from gpunode.model.spec import Expectation
from gpunode.remedy import Remedy


def expected(context: Context) -> Expectation:
    return context.spec.expect if context.spec else Expectation()


def unset(key: str) -> NotApplicable:
    return NotApplicable(f"nothing is expected: expect.{key} is not set")


def differs(
    what: str,
    key: str,
    wanted: str | Sequence[str],
    found: str | Sequence[str],
    *,
    reads: str,
    remedy: Remedy,
    about: tuple[Entity, ...] = (),
) -> Finding:
    """`what` names the thing in the summary: "driver"."""
    want, have = _said(wanted), _said(found)
    return Finding(
        f"{what}: {want} is expected, {have} was found",
        evidence=f"expect.{key}: wanted {want}; {reads}: found {have}",
        remedy=remedy,
        entities=about,
    )


def _said(values: str | Sequence[str]) -> str:
    return values if isinstance(values, str) else listing(values, 8) or "none"
