"""Where one setup mends all that several would, the remedies name that one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpunode.errors import GpunodeError
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, CheckResult, Finding
from gpunode.remedy import Command, Remedy, RepairAction, setup
from gpunode.values import dataclass

Answer = Callable[[tuple[str, ...]], Plan | GpunodeError]  # to the options of a setup
REBOOT = ("--reboot", "if-needed")
ALL = ("driver", "toolkit", "runtime")


@dataclass(frozen=True)
class Mended:
    """The setup that mends a finding, and its plan."""

    command: Command
    plan: Plan


def with_one_command(report: CheckReport, mended: Sequence[Mended], answer: Answer) -> CheckReport:
    """The report with that command in the remedies; as it is where they name one command, or no other does it all."""
    plain = [one for one in mended if _is_plain(one.command)]
    if len({one.command for one in plain}) < 2:
        return report
    parts = tuple(part for part in ALL if any(part in _parts(one.command) for one in plain))
    steps = {step.id for one in plain for step in one.plan.steps}
    for options in _candidates(parts, answer):
        plan = answer(options)
        if isinstance(plan, Plan) and steps <= {step.id for step in plan.steps}:
            # With something to do at the console, setup leaves the reboot to the person there.
            itself = plan.reboot is not None and plan.console is None
            reboots = itself and any(one.command.options[2:] == REBOOT for one in plain)
            return _named(report, parts, setup(*options, *(REBOOT if reboots else ())), plan)
    return report


def _candidates(parts: tuple[str, ...], answer: Answer) -> Iterator[tuple[str, ...]]:
    """The whole setup where nothing but these parts has anything to do."""
    only = ("--only", ",".join(parts))
    whole, some = answer(()), answer(only)
    same = isinstance(whole, Plan) and isinstance(some, Plan) and whole.steps == some.steps
    if len(parts) > 1 and (parts == ALL or same):
        yield ()
    yield only


def _is_plain(command: Command) -> bool:
    options = command.options
    return command.verb == "setup" and options[:1] == ("--only",) and options[2:] in ((), REBOOT)


def _parts(command: Command) -> list[str]:
    return command.options[1].split(",")


def _named(report: CheckReport, parts: tuple[str, ...], command: Command, plan: Plan) -> CheckReport:
    def named(result: CheckResult) -> CheckResult:
        finding = result.outcome
        if not isinstance(finding, Finding) or result.id.startswith("setup."):
            return result
        remedy = finding.remedy
        changed = tuple(command if isinstance(p, Command) and _replaced(p, parts) else p for p in remedy.parts)
        if changed == remedy.parts:
            return result
        action = _action(remedy, command, plan) if isinstance(changed[0], Command) else remedy.action
        return replace(result, outcome=replace(finding, remedy=Remedy(action, *changed)))

    return replace(report, results={id: named(result) for id, result in report.results.items()})


def _replaced(command: Command, parts: tuple[str, ...]) -> bool:
    return _is_plain(command) and set(_parts(command)) <= set(parts)


def _action(remedy: Remedy, command: Command, plan: Plan) -> RepairAction:
    """What the one command does, whatever this finding alone would need."""
    if command.options[-2:] == REBOOT:
        return RepairAction.REBOOT
    if any(step.installs for step in plan.steps):
        return RepairAction.UPGRADE
    return RepairAction.CONFIGURE if remedy.action is RepairAction.REBOOT else remedy.action
