"""Several runs as one report: the shards of an inventory, each with a controller of its own; and a run that went on."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.errors import ExitCode, UsageError
from gpunode.model.report import FleetReport, HostOutcome
from gpunode.model.run_record import HostState, MergedRuns, Overruled, PastHost, PastRun, RunHeader
from gpunode.remedy import Remedy, RepairAction, gpunode


def merge(runs: Sequence[PastRun]) -> MergedRuns:
    """Each host once: of two the later word counts. Raises UsageError for runs of different verbs."""
    verbs = dict.fromkeys(run.header.verb for run in runs)
    if len(verbs) > 1:
        raise UsageError(
            f"runs of {' and '.join(verbs)} are not one report",
            evidence=", ".join(f"{run.header.id} is of {run.header.verb}" for run in runs[:4]),
            remedy="merge runs of the same verb",
        )
    found: dict[str, tuple[PastHost, RunHeader]] = {}
    overruled = []
    for run in runs:
        for host in run.hosts:
            here = (host, run.header)
            there = found.get(host.target)
            if there is None:
                found[host.target] = here
                continue
            later, earlier = (there, here) if _time(*there) > _time(*here) else (here, there)
            found[host.target] = later
            if earlier[0].state is not HostState.WAITING:  # that says nothing, and nothing of it is overruled
                overruled.append(Overruled(host.target, earlier[1].id, later[1].id))
    return MergedRuns(
        tuple(run.header for run in runs),
        tuple(host for host, _ in found.values()),
        sum(run.torn for run in runs),
        tuple(overruled),
    )


def _time(host: PastHost, header: RunHeader) -> tuple[bool, str]:
    """What never began says nothing of the host, however late it was; the rest by its time, all in one form."""
    return host.state is not HostState.WAITING, host.at or header.begun


def with_earlier(past: PastRun, report: FleetReport) -> FleetReport:
    """How the whole run ended: `report` is of the hosts that it went on with. What --where left out of it now stays as
    it was.
    """
    now = {outcome.target: outcome for outcome in report.hosts if not outcome.left_out}
    hosts = tuple(now.get(host.target) or host.outcome or _not_ended(host, past) for host in past.hosts)
    return FleetReport(hosts, report.seconds)


def _not_ended(host: PastHost, past: PastRun) -> HostOutcome:
    began = host.state is HostState.BEGUN
    return HostOutcome(
        host.target,
        ExitCode.FAILED,
        problem="at work when the run was interrupted" if began else "not begun: the run was interrupted",
        remedy=Remedy(RepairAction.WAIT, gpunode("setup", "--resume", past.header.id, ssh=False), " goes on with it"),
    )
