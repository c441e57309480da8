"""Checks of a host's facts. A check never runs anything: it reads HostFacts, the spec and the catalog.

A new check is one function in the file of its group, decorated with @check; this package finds it. `check --list` loads
every group, so what only one check needs (an engine's reader, a table) is imported inside its function.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from gpunode.checks.causes import explained_by, explains
from gpunode.checks.registry import REGISTRY, Check, CheckDoc, Context, SameNeeds, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckReport, CheckResult
from gpunode.model.rules import AUTO
from gpunode.model.spec import Spec

if TYPE_CHECKING:
    from gpunode.catalog.load import Catalog

_UPGRADE = f"{__name__}.upgrade"  # judges a kubelet of a later release, and has no check of a host as it is

__all__ = ["CheckDoc", "all_checks", "check", "check_ids", "explain", "run_all"]


def run_all(
    host: HostFacts, spec: Spec | None, catalog: Catalog, today: date | None = None, profile: str = AUTO
) -> CheckReport:
    """Every check's result on `host`, by id. `spec` None: what is wanted of it is not known."""
    context = Context(spec, catalog, today, profile)
    why = cache(lambda need: need(host))  # all checks have thirty between them
    found: dict[str, CheckResult] = {}
    for same in by_needs():
        found.update(same.run(host, context, why))
    return CheckReport(host.target, {id: found[id] for id in check_ids()}, host)


def explain(id: str) -> CheckDoc | None:
    """The documentation of one check; None when no check has this id."""
    return next((doc for doc in all_checks() if doc.id == id), None)


@cache
def check_ids() -> tuple[str, ...]:
    """The ids of every check there is, sorted; all of them are loaded then."""
    return tuple(c.doc.id for c in _checks())


def all_checks() -> tuple[CheckDoc, ...]:
    """Every check there is, ordered by id."""
    return tuple(replace(c.doc, explains=explains(c.doc.id), explained_by=explained_by(c.doc.id)) for c in _checks())


@cache
def _checks() -> tuple[Check, ...]:
    for module in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if not module.name.startswith(_UPGRADE):
            importlib.import_module(module.name)
    return tuple(REGISTRY[id] for id in sorted(REGISTRY))


@cache
def by_needs() -> tuple[SameNeeds, ...]:
    """All checks, loaded, in some order: what one check finds is nothing to another."""
    alike: dict[tuple[object, ...], list[Check]] = {}
    for one in _checks():
        alike.setdefault((one.needs, one.mode), []).append(one)
    return tuple(map(SameNeeds, alike.values()))
