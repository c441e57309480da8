"""The plans that were agreed to, applied side by side, each with its run log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpunode.cli.errors import say
from gpunode.cli.hosts import on_each
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.output import progress_style
from gpunode.errors import UsageError
from gpunode.fleet.apply_one import HostWork, host_run, set_up
from gpunode.fleet.host import Host
from gpunode.fleet.run_log import RunLog, new_run_id, now
from gpunode.model.report import Event, FleetReport, HostOutcome
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.live import Progress
from gpunode.render.machine import event_json, host_line

if TYPE_CHECKING:
    from gpunode.fleet.rollout.rollout import Rollout


def refuse_unasked(yes: bool, verb: str, look: str, *words: str) -> None:
    """Raises UsageError where nobody can be asked and nobody said --yes; `look` leads to the verb that only looks."""
    if not (yes or sys.stdin.isatty()):
        raise UsageError(
            "there is no terminal to ask on",
            evidence=f"{verb} shows its plan and asks before the first change",
            remedy=Remedy(RepairAction.NONE, f"add --yes to go on without the question, {look}", gpunode(*words)),
        )


def apply_plans(
    named: tuple[Host, ...],
    planned: FleetReport,
    hosts: LiveOptions,
    output: OutputOptions,
    *,
    verb: str = "setup",
    host_work: HostWork | None = None,
    rollout: Rollout | None = None,
) -> FleetReport:
    """Every host that has a plan is brought to it; the others keep the outcome that planning gave them.

    Ctrl-C stops each host after its current step, which is said at once. `host_work`: how a plan is carried out; None:
    as setup does. `rollout`: in which order; None: side by side.
    """
    one = host_work or set_up
    run_id, stop = new_run_id(), rollout.stop if rollout else threading.Event()
    log = RunLog(run_id, complain=say)
    before = dict(zip(named, planned.hosts, strict=True))
    at_work = [str(host) for host, outcome in before.items() if outcome.plan]
    with Progress(progress_style(output), sys.stderr, at_work) as progress:
        one = rollout.host_work(one, progress.waits) if rollout else one

        def stopping() -> None:
            if rollout:
                rollout.gate.stop()
            progress.stopping()

        def work(host: Host) -> HostOutcome:
            plan = before[host].plan
            if plan is None:
                return before[host]
            outcome = one(host_run(host, run_id, _teller(log, progress), stop.is_set, log), plan)
            log.write(str(host), host_line(verb, outcome))
            return outcome

        def done(outcome: HostOutcome) -> None:
            if outcome.target in at_work:
                progress.done(outcome)

        report = on_each(named, hosts, work, done, stop, stopping)
    for target, command in rollout.closed if rollout else ():
        say(f"gpunode: {target} takes no new work: once it is well, run {command}")
    if not output.quiet:
        say(f"gpunode: run log in {log.directory}")
    return report


def _teller(log: RunLog, progress: Progress) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        log.write(event.target, event_json(event, at=now()))
        progress.event(event)

    return tell
