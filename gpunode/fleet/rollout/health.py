"""The gate between batches: what `check` finds on a host after its run, held against what it found there before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpunode.advice import listing
from gpunode.errors import ExitCode, GpunodeError
from gpunode.fleet.rollout.gate import WELL
from gpunode.model.layers import LAYERS, group_of
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, RunReport, Severity
from gpunode.model.run_record import Key
from gpunode.remedy import RepairAction
from gpunode.render.wording import count

# Daemons that come up after a reboot or a restart are given a minute.
_AGAIN_AFTER_S = (10.0, 20.0, 30.0)
_UNTIL_REBOOT = ("boot", "driver", "devices")  # layers in which the old driver is still in force
_UNTIL_RESTART = ("runtime", "Kubernetes", "services")  # those of a daemon that a person is to restart


def errors_of(report: CheckReport) -> frozenset[Key]:
    """Every failure, also those that another one explains."""
    return frozenset(key for result in report.failures for key in _keys(result))


def new_failures(before: frozenset[Key], after: CheckReport, run: RunReport) -> tuple[CheckResult, ...]:
    """The causes of failures that were not there, and that a reboot or restart which is still due does not explain."""
    causes = (c for c in after.causes if c.found is Severity.ERROR and not _known(before, c))
    return tuple(cause for cause in causes if not _explained(cause, run))


def _known(before: frozenset[Key], cause: CheckResult) -> bool:
    return (cause.id, "") in before or before.issuperset(_keys(cause))


def _keys(result: CheckResult) -> frozenset[Key]:
    entities = result.outcome.entities if isinstance(result.outcome, Finding) else ()
    return frozenset((result.id, f"{one.kind.value} {one.name}") for one in entities) or frozenset({(result.id, "")})


def _explained(cause: CheckResult, run: RunReport) -> bool:
    assert isinstance(cause.outcome, Finding)
    layer = LAYERS.get(group_of(cause.id), "")
    if run.reboot is not None:
        return cause.outcome.remedy.action is RepairAction.REBOOT or layer in _UNTIL_REBOOT
    return bool(run.by_hand) and layer in _UNTIL_RESTART


def with_health(
    outcome: HostOutcome,
    before: frozenset[Key],
    check: Callable[[], CheckReport],
    pause: Callable[[float], None],
) -> HostOutcome:
    """`outcome`, as a failure where the host is worse than it was; one that failed anyway is not asked."""
    run = outcome.run
    if run is None or outcome.code not in (*WELL, ExitCode.UNSUPPORTED) or run.error:
        return outcome
    try:
        found = _settled(before, check, run, pause)
    except GpunodeError as error:
        problem = f"after its setup the host cannot be checked: {error.problem}"
        return _failed(outcome, replace(run, error=problem, evidence=error.evidence, remedy=error.remedy), error.code)
    if not found:
        return outcome
    first = found[0].outcome
    assert isinstance(first, Finding)
    ids = listing(result.id for result in found)
    problem = f"all is done, and check has {count(len(found), 'failure')} that {'was' if len(found) == 1 else 'were'}"
    problem += f" not there before: {ids}"
    worse = replace(run, error=problem, evidence=f"{first.summary}: {first.evidence}", remedy=first.remedy)
    return _failed(outcome, worse, ExitCode.FAILED)


def _settled(
    before: frozenset[Key], check: Callable[[], CheckReport], run: RunReport, pause: Callable[[float], None]
) -> tuple[CheckResult, ...]:
    found = new_failures(before, check(), run)
    for wait_s in _AGAIN_AFTER_S:
        if not found:
            break
        pause(wait_s)
        found = new_failures(before, check(), run)
    return found


def _failed(outcome: HostOutcome, run: RunReport, code: ExitCode) -> HostOutcome:
    return replace(outcome, code=code, run=replace(run, code=code))
