"""The plans that were agreed to, applied side by side, each with its run log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpunode.cli.errors import say
from gpunode.cli.hosts import deadline_s, on_each
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.output import chosen_format, progress_style
from gpunode.cli.results import Ended, formats_of, line_of_each
from gpunode.cli.run.kept_run import SETUP, Order, record_of, whole
from gpunode.cli.run.lines_as_they_come import LinesAsTheyCome
from gpunode.converge import HostRun
from gpunode.errors import UsageError
from gpunode.fleet.apply_one import HostWork, host_run, set_up
from gpunode.fleet.deadline import Deadline
from gpunode.fleet.host import Host
from gpunode.fleet.run import outcome_of
from gpunode.fleet.run_log import RunLog, now
from gpunode.fleet.runs.outcome import lean
from gpunode.model.plan import Plan
from gpunode.model.report import Event, FleetReport, HostOutcome
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.live import Progress
from gpunode.render.machine import event_json, host_line
from gpunode.render.wording import closed_words

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
    order: Order = SETUP,
    host_work: HostWork | None = None,
    rollout: Rollout | None = None,
) -> FleetReport:
    """Every host that has a plan is brought to it; the others keep the outcome that planning gave them.

    Ctrl-C stops each host after its current step, which is said at once. `host_work`: how a plan is carried out; None:
    as setup does. `rollout`: in which order; None: side by side.
    """
    stop = rollout.stop if rollout else threading.Event()
    before = dict(zip(named, planned.hosts, strict=True))
    at_work = [str(host) for host, outcome in before.items() if outcome.plan]
    working = set(at_work)
    lines = LinesAsTheyCome(
        None if order.verb == "fix" else line_of_each(order.verb, output), output
    )  # a fix is checked afterwards
    keep = _kept_for_the_end(output, lines)
    health = rollout.health if rollout else None
    record = record_of(order, named, planned, hosts)
    log = RunLog(record.id, complain=say)
    with record, Progress(progress_style(output), sys.stderr, at_work) as progress:
        tell = _teller(log, progress, lines)

        def begun(host_run: HostRun, plan: Plan) -> HostOutcome:
            target = host_run.transport.target
            record.host_begins(target, health.before.get(target) if health else None)
            limit, turn = Deadline(deadline_s(hosts)), host_run.reboot_turn  # from its own turn on
            turn = replace(turn, take=limit.uncounted(turn.take))
            run = replace(host_run, stop=lambda: host_run.stop() or limit.passed, reboot_turn=turn)
            return limit.said((host_work or set_up)(run, plan))

        one = rollout.host_work(begun, progress.waits, record.host_closed) if rollout else begun

        def stopping() -> None:
            if rollout:
                rollout.gate.stop()
            progress.stopping()

        def work(host: Host) -> HostOutcome:
            outcome = before.pop(host)
            plan = outcome.plan
            if plan is not None:
                outcome = outcome_of(host, lambda _: one(host_run(host, record.work_id, tell, stop.is_set, log), plan))
                log.write(str(host), host_line(order.verb, outcome))
            if plan is not None or order.past is None:
                record.host_ends(outcome)
            lines.ended(outcome)
            return keep(outcome)

        def done(outcome: HostOutcome) -> None:
            if outcome.target in working:
                progress.done(outcome)

        report = whole(on_each(named, hosts, work, done, stop, stopping), record, order)
    _say_closed(rollout)
    if not output.quiet:
        say(f"gpunode: run log in {log.directory}")
    lines.finish(report)
    return report


def _say_closed(rollout: Rollout | None) -> None:
    for target, command in rollout.closed if rollout else ():
        say(f"gpunode: {closed_words(target, command)}")


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
