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
from gpunode.checks.registry import REGISTRY, Check, CheckDoc, Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckReport
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
    why = cache(lambda need: need(host))  # two hundred checks have thirty needs
    return CheckReport(host.target, {c.id: c.run(host, context, why) for c in _checks()}, host)


def explain(id: str) -> CheckDoc | None:
    """The documentation of one check; None when no check has this id."""
    return next((doc for doc in all_checks() if doc.id == id), None)


def check_ids() -> tuple[str, ...]:
    """The ids of every check there is, sorted; all groups are loaded then."""
    return tuple(c.id for c in _checks())


def all_checks() -> tuple[CheckDoc, ...]:
    """Every check there is, ordered by id."""
    return tuple(replace(c.doc, explains=explains(c.id), explained_by=explained_by(c.id)) for c in _checks())


@cache
def _checks() -> tuple[Check, ...]:
    for module in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if not module.name.startswith(_UPGRADE):
            importlib.import_module(module.name)
    return tuple(REGISTRY[id] for id in sorted(REGISTRY))
