"""The plans that were agreed to, applied side by side, each with its run log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpunode.cli.errors import say
from gpunode.cli.hosts import deadline_s, on_each, typed_connection
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.output import chosen_format, progress_style
from gpunode.cli.results import Ended, LinesAsTheyCome, each_line, formats_of, over_ssh
from gpunode.converge import HostRun
from gpunode.errors import UsageError
from gpunode.fleet.apply_one import HostWork, host_run, set_up, user_name
from gpunode.fleet.deadline import Deadline
from gpunode.fleet.host import Host
from gpunode.fleet.run import outcome_of
from gpunode.fleet.run_log import RunLog, now
from gpunode.fleet.runs.header import kept_spec
from gpunode.fleet.runs.merge import with_earlier
from gpunode.fleet.runs.outcome import lean
from gpunode.fleet.runs.proof import proof_of
from gpunode.fleet.runs.record import About, Record, begin, go_on
from gpunode.model.plan import Plan
from gpunode.model.report import Event, FleetReport, HostOutcome
from gpunode.model.run_record import PastRun
from gpunode.model.spec import Spec
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


def confirmed(question: str) -> bool:
    """Whether somebody says yes; nothing and the end of the input are a no."""
    say(f"{question}? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def apply_plans(
    named: tuple[Host, ...],
    planned: FleetReport,
    hosts: LiveOptions,
    output: OutputOptions,
    *,
    verb: str = "setup",
    host_work: HostWork | None = None,
    spec: Spec | None = None,
    own: str = "",
    past: PastRun | None = None,
    flags: tuple[str, ...] = (),
    rollout: Rollout | None = None,
) -> FleetReport:
    """Every host that has a plan is brought to it; the others keep the outcome that planning gave them.

    Ctrl-C stops each host after its current step, which is said at once. `host_work`: how a plan is carried out; None:
    as setup does. `spec`: what is kept of the run for a retry; `own`: what
    was typed, where each host has a spec of its own. `past`: the run that goes on, in place of a new one; a
    host that gets no plan stays in it as it was, so that it can go on once more.
    `rollout`: in which order; None: side by side. `flags`: the options of it that were typed.
    """
    stop = rollout.stop if rollout else threading.Event()
    before = dict(zip(named, planned.hosts, strict=True))
    at_work = [str(host) for host, outcome in before.items() if outcome.plan]
    lines = LinesAsTheyCome(None if verb == "fix" else each_line(verb, output), output)  # a fix is checked afterwards
    keep = _kept_for_the_end(output, lines)
    record = _record(named, planned, hosts, verb, spec, own, past, flags)
    log = RunLog(record.id, complain=say)
    with record, Progress(progress_style(output), sys.stderr, at_work) as progress:
        tell = _teller(log, progress, lines)

        def begun(host_run: HostRun, plan: Plan) -> HostOutcome:
            record.host_begins(host_run.transport.target)
            limit, turn = Deadline(deadline_s(hosts)), host_run.reboot_turn  # from its own turn on
            turn = replace(turn, take=limit.uncounted(turn.take))
            run = replace(host_run, stop=lambda: host_run.stop() or limit.passed, reboot_turn=turn)
            return limit.said((host_work or set_up)(run, plan))

        one = rollout.host_work(begun, progress.waits) if rollout else begun

        def stopping() -> None:
            if rollout:
                rollout.gate.stop()
            progress.stopping()

        def work(host: Host) -> HostOutcome:
            outcome = before.pop(host)
            plan = outcome.plan
            if plan is not None:
                outcome = outcome_of(host, lambda _: one(host_run(host, record.work_id, tell, stop.is_set, log), plan))
                log.write(str(host), host_line(verb, outcome))
            if plan is not None or past is None:
                record.host_ends(outcome)
            lines.ended(outcome)
            return keep(outcome)

        def done(outcome: HostOutcome) -> None:
            if outcome.target in at_work:
                progress.done(outcome)

        report = _whole(on_each(named, hosts, work, done, stop, stopping), record, past)
    _say_closed(rollout)
    if not output.quiet:
        say(f"gpunode: run log in {log.directory}")
    lines.finish(report)
    return report


def _say_closed(rollout: Rollout | None) -> None:
    for target, command in rollout.closed if rollout else ():
        say(f"gpunode: {target} takes no new work: once it is well, run {command}")


def keep_unplanned(
    named: tuple[Host, ...],
    report: FleetReport,
    hosts: LiveOptions,
    *,
    verb: str = "setup",
    spec: Spec | None = None,
    own: str = "",
    past: PastRun | None = None,
    flags: tuple[str, ...] = (),
) -> FleetReport:
    """A run in which no host has a plan changes none, and is the last one all the same: it is what is tried again.

    Where it cannot be kept, why no host has a plan is what counts. In one that goes on they stay as they were: what
    cannot be reached now has not ended.
    """
    try:
        with _record(named, report, hosts, verb, spec, own, past, flags) as record:
            for outcome in report.hosts if past is None else ():
                record.host_ends(outcome)
            return _whole(report, record, past)
    except UsageError as error:
        say(f"gpunode: no record is kept: {error.problem}: {error.evidence}")
        return report


def _whole(report: FleetReport, record: Record, past: PastRun | None) -> FleetReport:
    """The run's end, with what was done before it went on."""
    whole = with_earlier(past, report) if past else report
    record.end([host for host in whole.hosts if not host.left_out])
    return replace(whole, run=record.id)


def _record(
    named: tuple[Host, ...],
    planned: FleetReport,
    hosts: LiveOptions,
    verb: str,
    spec: Spec | None,
    own: str,
    past: PastRun | None,
    flags: tuple[str, ...],
) -> Record:
    """A spec is kept where it is every host's: a retry must not want of a host what was another's."""
    if past is not None:
        return go_on(past, say)
    ssh = over_ssh(named)
    connection = tuple(typed_connection(hosts).items()) if ssh else ()
    kept = (None, proof_of(own)) if own else kept_spec(spec)
    its_hosts = tuple(host.target for host in planned.hosts if not host.left_out)
    return begin(About(verb, its_hosts, user_name(), ssh, connection, *kept, flags), say)


def _kept_for_the_end(output: OutputOptions, lines: LinesAsTheyCome) -> Callable[[HostOutcome], HostOutcome]:
    """What is held of a host that has ended: all of it only where the result is yet to be printed with its plan."""
    text = chosen_format(output, formats_of(Ended), plans=True) == "text"
    return lean if text or lines.on else lambda outcome: outcome


def _teller(log: RunLog, progress: Progress, lines: LinesAsTheyCome) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        line = event_json(event, at=now())
        log.write(event.target, line)
        lines.event(line)
        progress.event(event)

    return tell
