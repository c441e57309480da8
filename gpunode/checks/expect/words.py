"""How a check of an expectation answers: nothing expected, not known, or what was wanted and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing
from gpunode.checks.registry import Context
from gpunode.model.entities import Entity
from gpunode.model.facts import HostFacts
from gpunode.model.report import Finding, NotApplicable, Severity
from gpunode.model.spec import Expectation
from gpunode.remedy import Remedy, RepairAction

# What keeps a host that was read as root from saying it, and what to do then.
MUTE = {
    "numa": "set the NUMA nodes in the firmware, or of the virtual machine",
    "flavour": "load the driver's module",
    "cuda": "mend nvidia-smi (user.smi-works)",
    "mig": "mend nvidia-smi (user.smi-works)",
    "vbios": "mend nvidia-smi (user.smi-works)",
    "cdi": "start the engine, so that it answers",
    "engines": "start the engine, so that it answers",
    "handler": "start the engine, so that it answers",
    "default_runtime": "start the engine, so that it answers",
}


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


def unsaid(
    host: HostFacts,
    what: str,
    key: str,
    wanted: str | Sequence[str],
    why: NotApplicable,
    about: tuple[Entity, ...] = (),
) -> Finding:
    """Nothing was compared, which is no match: whoever expects something of a host wants to know that."""
    want = _said(wanted)
    look = MUTE.get(key, "look at what keeps it from being read") if host.root else "check again as root"
    return Finding(
        f"{what}: {want} is expected, this host does not say",
        evidence=f"expect.{key}: wanted {want}; this host does not say: {why.reason}",
        remedy=Remedy(RepairAction.NONE, f"{look}; else leave expect.{key} out"),
        severity=Severity.WARNING,
        entities=about,
        short=f"{what}: not known",
    )


def _said(values: str | Sequence[str]) -> str:
    return values if isinstance(values, str) else listing(values, 8) or "none"
