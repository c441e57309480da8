"""The plans that were agreed to, applied side by side, each with its run log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from gpunode.cli.errors import say
from gpunode.cli.hosts import deadline_s, on_each
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.output import progress_style
from gpunode.errors import UsageError
from gpunode.fleet.apply_one import HostWork, host_run, set_up
from gpunode.fleet.deadline import Deadline
from gpunode.fleet.host import Host
from gpunode.fleet.run_log import RunLog, new_run_id, now
from gpunode.model.report import Event, FleetReport, HostOutcome
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.live import Progress
from gpunode.render.machine import event_json, host_line


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
) -> FleetReport:
    """Every host that has a plan is brought to it; the others keep the outcome that planning gave them.

    Ctrl-C stops each host after its current step, which is said at once. `host_work`: how a plan is carried out; None:
    as setup does.
    """
    one = host_work or set_up
    run_id, stop = new_run_id(), threading.Event()
    log = RunLog(run_id, complain=say)
    before = dict(zip(named, planned.hosts, strict=True))
    at_work = [str(host) for host, outcome in before.items() if outcome.plan]
    with Progress(progress_style(output), sys.stderr, at_work) as progress:

        def work(host: Host) -> HostOutcome:
            plan = before[host].plan
            if plan is None:
                return before[host]
            limit = Deadline(deadline_s(hosts))
            run = host_run(host, run_id, _teller(log, progress), lambda: stop.is_set() or limit.passed, log)
            outcome = limit.said(one(run, plan))
            log.write(str(host), host_line(verb, outcome))
            return outcome

        def done(outcome: HostOutcome) -> None:
            if outcome.target in at_work:
                progress.done(outcome)

        report = on_each(named, hosts, work, done, stop, progress.stopping)
    if not output.quiet:
        say(f"gpunode: run log in {log.directory}")
    return report


def _teller(log: RunLog, progress: Progress) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        log.write(event.target, event_json(event, at=now()))
        progress.event(event)

    return tell
