"""A host that is worse after its setup than before has failed; what was wrong before or waits for a reboot is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpunode.converge import HostRun
from gpunode.errors import ExitCode, TransportError
from gpunode.fleet.rollout.health import errors_of
from gpunode.fleet.rollout.policy import Policy
from gpunode.fleet.rollout.rollout import Health
from gpunode.model.entities import pci
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, Severity, Untouched
from gpunode.remedy import Remedy, RepairAction
from tests.fleet.rollout.fakes import Fleet, done, names, reboot

FIX = Remedy(RepairAction.CONFIGURE, "mend it")


def found(id: str, *, severity: Severity = Severity.ERROR, gpu: str = "", **changes: object) -> CheckResult:
    finding = replace(Finding(f"{id} is wrong", "seen", FIX, entities=pci(gpu) if gpu else ()), **changes)  # type: ignore[arg-type]
    return CheckResult(id, severity, finding)


def report(*results: CheckResult) -> CheckReport:
    return CheckReport("h", {result.id: result for result in results})


WELL = report(CheckResult("rt.docker-live", Severity.ERROR, None))
DOCKER = report(found("rt.docker-live"))


def after(
    before: CheckReport, looks: Sequence[CheckReport | Exception], outcome: HostOutcome
) -> tuple[tuple[HostOutcome, ...], int]:
    """How two hosts end, of which the first is the canary and ends as `outcome`; and how often it was looked at."""
    coming, asked = iter(looks), []

    def check(target: str) -> CheckReport:
        if target == "gpu02":
            return WELL
        asked.append(target)
        look = next(coming)
        if isinstance(look, Exception):
            raise look
        return look

    health = Health(check, {"gpu01": errors_of(before), "gpu02": frozenset()})
    fleet = Fleet(names(2), Policy(canary=1), health=health)
    ended = fleet.run(lambda run, _: replace(outcome, target=run.transport.target))
    return ended.hosts, len(asked)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (WELL, WELL),
        (DOCKER, DOCKER),
        (WELL, report(found("rt.docker-live", severity=Severity.WARNING))),
        (WELL, report(found("rt.docker-live", cause="drv.x"), found("drv.x", severity=Severity.WARNING))),
        (report(found("health.ecc", gpu="0000:41:00.0")), report(found("health.ecc", gpu="0000:41:00.0"))),
    ],
    ids=["well", "was wrong before", "a warning", "explained by a warning", "the same GPU"],
)
def test_a_host_that_is_no_worse_is_well(before: CheckReport, now: CheckReport) -> None:
    hosts, asked = after(before, [now], done("x"))
    assert [host.code for host in hosts] == [ExitCode.DONE] * 2
    assert asked == 1


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (WELL, DOCKER),
        (report(found("rt.docker-live", severity=Severity.WARNING)), DOCKER),
        (report(found("health.ecc", gpu="0000:41:00.0")), report(found("health.ecc", gpu="0000:81:00.0"))),
    ],
    ids=["new", "a warning that became a failure", "another GPU"],
)
def test_a_new_failure_fails_the_host_and_so_the_canary(before: CheckReport, now: CheckReport) -> None:
    hosts, asked = after(before, [now] * 4, done("x"))
    assert [host.code for host in hosts] == [ExitCode.FAILED] * 2
    assert asked == 4, "a daemon has a minute to come up"
    assert hosts[0].run is not None
    assert hosts[0].run.error.endswith(f"was not there before: {next(iter(now.results))}")
    assert (hosts[0].run.remedy, hosts[0].run.code) == (FIX, ExitCode.FAILED)
    assert hosts[0].run.steps, "what was done is still in the report"
    assert hosts[1].problem == "not begun: the canary gpu01 failed"


def test_a_failure_that_passes_is_none() -> None:
    hosts, asked = after(WELL, [DOCKER, DOCKER, WELL], done("x"))
    assert (hosts[0].code, asked) == (ExitCode.DONE, 3)


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (report(found("drv.running-vs-userspace")), ExitCode.REBOOT_NEEDED),
        (report(found("os.odd", remedy=Remedy(RepairAction.REBOOT, "reboot"))), ExitCode.REBOOT_NEEDED),
        (DOCKER, ExitCode.FAILED),
    ],
    ids=["of the driver", "its remedy is the reboot", "of an engine"],
)
def test_what_a_reboot_that_is_due_explains(now: CheckReport, code: ExitCode) -> None:
    outcome = done("x", code=ExitCode.REBOOT_NEEDED)
    assert outcome.run is not None
    due = replace(outcome, run=replace(outcome.run, reboot="another driver is loaded"))
    assert after(WELL, [now] * 4, due)[0][0].code is code


def test_a_host_that_cannot_be_looked_at_any_more_is_unreachable() -> None:
    hosts, _ = after(WELL, [TransportError("gpu01: no answer")], done("x"))
    assert hosts[0].code is ExitCode.UNREACHABLE
    assert hosts[1].problem == "not begun: the canary gpu01 failed"


@pytest.mark.parametrize("outcome", [done("x", changed=False), done("x", code=ExitCode.FAILED)])
def test_a_host_that_was_not_changed_or_failed_anyway_is_not_looked_at(outcome: HostOutcome) -> None:
    assert after(WELL, [], outcome)[1] == 0


def test_a_host_that_only_rebooted_is_looked_at() -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        assert reboot(host_run) == ""
        return done(host_run.transport.target, changed=False)

    fleet = Fleet(names(2), Policy(canary=1), health=Health(lambda target: DOCKER, {}))
    ended = fleet.run(one)
    assert [host.code for host in ended.hosts] == [ExitCode.FAILED] * 2
    assert ended.hosts[1].problem == "not begun: gpu01 is not well after its reboot"


@pytest.mark.parametrize("now", [WELL, DOCKER], ids=["mended", "as the last run left it"])
def test_who_is_tried_again_is_held_against_what_it_was_before_the_first_run(now: CheckReport) -> None:
    """What that run broke was there before this one, and is no better for that; also where nothing is left to do."""
    health = Health(lambda target: now, {"gpu01": errors_of(WELL)}, owing={"gpu01"})
    fleet = Fleet(names(2), Policy(canary=1), health=health)
    hosts = fleet.run(lambda run, _: done(run.transport.target, changed=False)).hosts
    ends = (ExitCode.DONE, ExitCode.DONE) if now is WELL else (ExitCode.FAILED, ExitCode.FAILED)
    assert tuple(host.code for host in hosts) == ends
    assert hosts[1].untouched is (None if now is WELL else Untouched.NOT_BEGUN)


def test_who_had_nothing_to_do_and_owes_nothing_is_not_looked_at() -> None:
    health = Health(lambda target: DOCKER, {"gpu01": errors_of(WELL)}, owing={"gpu02"})
    fleet = Fleet(names(1), health=health, idle=names(1))
    assert fleet.run(lambda run, _: done(run.transport.target, changed=False)).hosts[0].code is ExitCode.DONE
