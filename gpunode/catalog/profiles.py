"""Profiles: what kind of node it is, and what that says about which checks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.driver import Grade
from gpunode.model.rules import WEIGHTS, Weight
from gpunode.values import dataclass


@dataclass(frozen=True)
class LeftOut:
    check: str  # an id, or a pattern of ids: "health.*"
    reason: str


@dataclass(frozen=True)
class Reweighed:
    check: str
    severity: Weight
    reason: str


@dataclass(frozen=True)
class Profile:
    name: str  # "hgx"
    title: str  # "HGX node"
    skip: tuple[LeftOut, ...]
    weigh: tuple[Reweighed, ...]
    source: str
    checked: str
    grade: Grade


@cache
def profiles() -> dict[str, Profile]:
    """By name. Raises UsageError that names row and key of a fault in the file."""
    return {profile.name: profile for profile in map(_profile, rows("profiles.yaml", "profiles", "name"))}


def _profile(row: Row) -> Profile:
    skip, weigh = tuple(_left_out(row)), tuple(_reweighed(row))
    profile = Profile(row.text("name"), row.text("title"), skip, weigh, *row.provenance())
    row.done()
    return profile


def _left_out(row: Row) -> Iterator[LeftOut]:
    for one in row.maybe_rows("skip"):
        checks, reason = one.texts("checks"), one.text("reason")
        one.done()
        yield from (LeftOut(check, reason) for check in checks)


def _reweighed(row: Row) -> Iterator[Reweighed]:
    for one in row.maybe_rows("weigh"):
        checks, weight, reason = (
            one.texts("checks"),
            one.one_of("severity", tuple(WEIGHTS.values())),
            one.text("reason"),
        )
        one.done()
        yield from (Reweighed(check, weight, reason) for check in checks)
