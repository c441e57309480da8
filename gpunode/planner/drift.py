"""Whether a plan that was shown or saved is the one that today's facts lead to: argv by argv, byte by byte.

A plan is data that anybody may have edited, and so is whatever it states about itself (the facts' hash, `description`).
So none of it is believed: it is compared with a fresh plan, and the fresh one is what runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields

from gpunode.advice import listing
from gpunode.errors import Drift, UsageError
from gpunode.masking import mask_argv, masked
from gpunode.model.action import Action, Run
from gpunode.model.plan import Plan, Step
from gpunode.remedy import Remedy, RepairAction, gpunode

# What describes the host and the plan: shown from the fresh one, never run. Steps and undo are compared in parts.
DESCRIBES = {"target", "spec", "facts_sha256", "about", "driver", "kept", "answers", "hostname", "steps", "undo"}
MOST = 6  # differences that are shown; the rest are counted
_LONG = 160  # characters of each value that are shown


def same_plan(saved: Plan, fresh: Plan) -> Plan:
    """`fresh`, when `saved` would run the same on the same host. Raises UsageError for another host's plan, Drift."""
    if saved.hostname != fresh.hostname:
        raise UsageError(
            f"{fresh.target}: this plan is for {_short(saved.hostname) or 'a host without a name'}, "
            f"and this host is {fresh.hostname or 'without a name'}; nothing was written",
            evidence="the plan's hostname is not the one that the host gave",
            remedy=Remedy(
                RepairAction.NONE,
                "name the host that the plan was made for, or make a plan for this one with ",
                gpunode("plan", "--save"),
            ),
        )
    found = tuple(differences(saved, fresh))
    if not found and saved.steps == fresh.steps:
        return fresh
    raise Drift(
        f"{fresh.target}: the host changed since the plan was made, or the plan was edited; nothing was written",
        evidence="today's facts lead to another plan:\n" + listing(found, MOST, between="\n"),
        remedy=Remedy(RepairAction.NONE, gpunode("plan", "--save"), " makes a new one"),
    )


def differences(saved: Plan, fresh: Plan) -> Iterator[str]:
    """What would run, or be described, otherwise; a line each. Facts that lead to the same steps are no difference."""
    yield from _order(saved.steps, fresh.steps)
    now = {step.id: step for step in fresh.steps}
    for step in saved.steps:
        if step.id in now:
            yield from _step(step, now[step.id])
    for name in [field.name for field in fields(Plan) if field.name not in DESCRIBES]:
        yield from _value(name, getattr(saved, name), getattr(fresh, name))
    for name in ("runs", "packages", "pending"):
        yield from _value(f"undo of {name}", getattr(saved.undo, name, None), getattr(fresh.undo, name, None))


def _order(saved: tuple[Step, ...], fresh: tuple[Step, ...]) -> Iterator[str]:
    before, now = [step.id for step in saved], [step.id for step in fresh]
    if before == now:
        return
    yield from (f"{_short(name)}: not a step today" for name in dict.fromkeys(before) if name not in now)
    yield from (f"{_short(name)}: a step today, and not in the plan" for name in now if name not in before)
    if set(before) == set(now):
        yield f"the steps' order: {_short(', '.join(before))}; today {_short(', '.join(now))}"


def _step(saved: Step, fresh: Step) -> Iterator[str]:
    for name in [field.name for field in fields(Step)]:
        compare = _actions if name in ("actions", "undo") else _value
        yield from compare(f"{saved.id}: {name}", getattr(saved, name), getattr(fresh, name))


def _actions(where: str, saved: tuple[Action, ...], fresh: tuple[Action, ...]) -> Iterator[str]:
    if len(saved) != len(fresh):
        yield f"{where}: {len(saved)} in the plan, {len(fresh)} today"
    for number, (old, new) in enumerate(zip(saved, fresh, strict=False), 1):
        if old == new:
            continue
        if type(old) is not type(new):
            yield f"{where} {number}: {type(old).__name__} in the plan, {type(new).__name__} today"
            continue
        for field in fields(old):
            yield from _value(f"{where} {number}: {field.name}", getattr(old, field.name), getattr(new, field.name))


def _value(where: str, saved: object, fresh: object) -> Iterator[str]:
    if saved == fresh:
        return
    if where.endswith((": text", ": stdin")) and isinstance(saved, str) and isinstance(fresh, str):
        line = saved.count("\n", 0, _common(saved, fresh)) + 1  # a file's bytes may hold anybody's password
        sizes = f"{len(saved)} characters in the plan, {len(fresh)} today"
        yield f"{_short(where)}: {sizes}, other ones from line {line} on"
    else:
        yield f"{_short(where)}: {_words(saved, fresh)} in the plan, {_words(fresh, saved)} today"


def _words(value: object, other: object) -> str:
    """A value on one line, secrets masked; of a long text the place where it leaves the other."""
    shown, against = _shown(value), _shown(other)
    begin = max(0, _common(shown, against) - 40)
    return ("..." if begin else "") + _short(shown[begin:])


def _shown(value: object) -> str:
    if isinstance(value, Run):
        return _shown(value.argv)
    if isinstance(value, tuple) and all(isinstance(word, str) for word in value):
        return shlex.join(mask_argv(value))
    return masked(repr(value))


def _common(one: str, two: str) -> int:
    """How many characters both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _short(text: str) -> str:
    """On one line, whatever a file calls its steps: a name with line ends could pass for a remedy of gpunode's."""
    line = text.replace("\n", "\\n").replace("\r", "\\r")
    return line if len(line) <= _LONG else line[:_LONG] + "..."
