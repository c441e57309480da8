"""How a site weighs what check finds: the profile, severities, and findings that are accepted until a day."""

from __future__ import annotations

import re
from datetime import date
from typing import Literal

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.values import dataclass

Weight = Literal["error", "warning"]
WEIGHTS: dict[str, Weight] = {"error": "error", "warning": "warning"}
AUTO = "auto"
LONGEST_REASON = 300  # characters: it stands on a line of the report
MOST = 200  # acknowledgements and severities of one spec, each
ID_FORM = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"


@dataclass(frozen=True)
class Acknowledgement:
    """One finding that is accepted: of this check, about this entity (None: whatever it is about)."""

    id: str
    reason: str
    expires: date  # the last day on which it holds
    entity: str | None = None  # a PCI address, UUID, unit, or path with or without its line: "/etc/x.toml:3"

    def __str__(self) -> str:
        return f"{self.id} of {self.entity}" if self.entity else self.id


@dataclass(frozen=True)
class Rules:
    """What a spec says of checks, which setup does not read."""

    profile: str = AUTO
    severity: tuple[tuple[str, Weight], ...] = ()  # check -> what its findings are here
    acknowledge: tuple[Acknowledgement, ...] = ()


def parse_weight(id: str, text: str) -> Weight:
    """Raises UsageError for what is no severity."""
    if (word := text.strip().lower()) in WEIGHTS:
        return WEIGHTS[word]
    raise UsageError(
        f"severity of {id}: {text[:80]!r} is not a choice",
        evidence=f"{meant(text[:80], WEIGHTS)}the choices are {', '.join(WEIGHTS)}; acknowledge accepts a finding, "
        "--skip leaves a check out",
    )


def parse_acknowledgement(values: dict[str, str]) -> Acknowledgement:
    """One mapping of the list `acknowledge`. Raises UsageError for a key too many, one too few, and an odd value."""
    known = ("id", "entity", "reason", "expires")
    if unknown := next((key for key in values if key not in known), None):
        said = f"acknowledge: {unknown[:80]!r} is not a key of it"
        raise UsageError(said, evidence=f"{meant(unknown[:80], known)}its keys are {', '.join(known)}")
    if missing := [key for key in known if key != "entity" and not values.get(key, "").strip()]:
        raise UsageError(
            f"acknowledge: {' and '.join(missing)} must be there",
            evidence="what is accepted (id), why (reason), and until which day (expires)",
        )
    reason = " ".join(values["reason"].split())
    if len(reason) > LONGEST_REASON:
        raise UsageError(f"acknowledge: the reason is over {LONGEST_REASON} characters")
    entity = values.get("entity", "").strip() or None
    return Acknowledgement(values["id"].strip(), reason, _day(values["expires"]), entity)


def _day(text: str) -> date:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip(), re.ASCII):
        try:
            return date.fromisoformat(text.strip())
        except ValueError:  # the 31st of June
            pass
    raise UsageError(f"acknowledge: expires {text[:80]!r} is not a day", evidence="it is a date such as 2026-12-31")
