"""How a host ended, as a line of outcomes.jsonl and back: what a text says of it, without plans, facts and output.

{"schema": "gpunode.run-outcome/1", "at": ..., "target": "gpu07", "state": "at-work",      before it is changed
 "failing": [["rt.docker-live", ""]]}                                                     null: it was not checked
{"schema": ..., "at": ..., "target": "gpu07", "state": "ended", "code": 0, "problem": "", "evidence": "",
 "remedy": {"action": "none", "text": ""}, "check_id": "", "untouched": false,
 "run": {"steps": [...], "kept": [...], ...}}
{"schema": ..., "at": ..., "target": "gpu07", "failing": [...]}      before an earlier run, whose changes stand
{"schema": ..., "at": ..., "target": "gpu07", "closed": ["kubectl uncordon gpu07"]}   before it is; [] once it is open
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from gpunode.errors import ExitCode
from gpunode.foreign import read_json
from gpunode.masking import masked
from gpunode.model.plan import Kept, Plan, Undoing
from gpunode.model.report import HostOutcome, RunReport, StepResult, StepStatus, Untouched
from gpunode.model.run_record import HostState, Key, PastHost
from gpunode.model.spec import Spec
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.clean import clean_json
from gpunode.values import dataclass

SCHEMA = "gpunode.run-outcome/1"
LONGEST = 4000  # characters of one text; a daemon's last words may be pages, and are whole in the host's own log
MOST = 500  # steps, and things that are kept
LONGEST_LINE = 4 << 20  # bytes, which is all that is read of one; five hundred steps with the longest texts are more

Data = dict[str, Any]


@dataclass(frozen=True)
class ClosedHost:
    """By which commands, to be typed, work comes to the host again; () where it does."""

    target: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class OwingHost:
    """What failed on the host before an earlier run changed it."""

    target: str
    failing: frozenset[Key]


def lean(outcome: HostOutcome) -> HostOutcome:
    """What a text needs of a host that has ended; a plan with its files alone is a quarter of a megabyte."""
    run = outcome.run
    if run is not None:
        plan = run.plan and _lean_plan(run.plan.target, _said(run.plan), undo=run.plan.undo is not None)
        run = replace(run, plan=plan, steps=tuple(replace(step, commands=()) for step in run.steps))
    return replace(outcome, run=run, plan=None, facts=None)


def _said(plan: Plan) -> tuple[Kept, ...]:
    """What the end of a run says of a plan."""
    return tuple(kept for kept in plan.kept if kept.refused or kept.beware)


def _lean_plan(target: str, kept: tuple[Kept, ...], *, undo: bool) -> Plan:
    return Plan(target, Spec(), "", kept=kept, undo=Undoing(()) if undo else None)


def begun_line(target: str, at: str, failing: Collection[Key] | None = None) -> str:
    """`failing`: which checks fail on it now; None: nobody looked."""
    keys = None if failing is None else _keys(failing)
    state = HostState.BEGUN.value
    return _line({"schema": SCHEMA, "at": at, "target": masked(target), "state": state, "failing": keys})


def owing_line(target: str, failing: Collection[Key], at: str) -> str:
    return _line({"schema": SCHEMA, "at": at, "target": masked(target), "failing": _keys(failing)})


def _keys(failing: Collection[Key]) -> list[list[str]]:
    return [[_kept(word) for word in key] for key in sorted(failing)[:MOST]]


def closed_line(target: str, commands: Sequence[str], at: str) -> str:
    kept = [_kept(command) for command in commands[:MOST]]
    return _line({"schema": SCHEMA, "at": at, "target": masked(target), "closed": kept})


def ended_line(outcome: HostOutcome, at: str) -> str:
    """With a newline at its end. Secrets are masked text by text: of a whole line it takes ten times as long."""
    run = outcome.run
    data = {
        "schema": SCHEMA,
        "at": at,
        "target": masked(outcome.target),
        "state": HostState.ENDED.value,
        "code": int(outcome.code),
        **_texts(outcome, "problem", "evidence", "check_id"),
        "remedy": _remedy(outcome.remedy),
        "untouched": outcome.untouched is not None,
        "run": None if run is None else _run(run),
    }
    line = _line(data)
    for most in (400, 40):
        if len(line.encode("utf-8", "surrogateescape")) <= LONGEST_LINE:
            break
        line = _line({**data, "run": _shortened(data["run"], most)})
    return line


def _shortened(data: Any, most: int) -> Any:
    """The same with at most so many characters of each text."""
    if isinstance(data, dict):
        return {key: _shortened(value, most) for key, value in data.items()}
    if isinstance(data, list):
        return [_shortened(value, most) for value in data]
    return data[:most] if isinstance(data, str) else data


def _line(data: Data) -> str:
    return clean_json(json.dumps(data, ensure_ascii=False) + "\n")


def _run(run: RunReport) -> Data:
    return {
        "steps": [
            {"status": step.status.value, **_texts(step, "id", "error", "evidence"),
             "remedy": _remedy(step.remedy)}
            for step in run.steps[:MOST]
        ],
        **_texts(run, "error", "evidence"),
        "reboot": run.reboot and _kept(run.reboot),
        "remedy": _remedy(run.remedy),
        "by_hand": [_kept(text) for text in run.by_hand[:MOST]],
        "undo": run.plan is not None and run.plan.undo is not None,
        "kept": [
            {**_texts(kept, "id", "text", "evidence"), "refused": kept.refused, "beware": kept.beware,
             "remedy": _remedy(kept.remedy)}
            for kept in (_said(run.plan)[:MOST] if run.plan else ())
        ],
    }  # fmt: skip


def _texts(value: object, *names: str) -> Data:
    return {name: _kept(getattr(value, name)) for name in names}


def _remedy(remedy: Remedy) -> Data:
    return {"action": remedy.action.value, "text": _kept(remedy.text)}


def _kept(text: str) -> str:
    return masked(text)[:LONGEST] if text else ""


def parse_outcome(line: str) -> PastHost | ClosedHost | OwingHost:
    """Raises ValueError for what is not a whole line of one of those above."""
    try:
        data = read_json(line, own=True)
        target, at = str(data["target"]), _text(data, "at")
        if data["schema"] != SCHEMA:
            raise ValueError("it is of another form")
        if "closed" in data:
            return ClosedHost(target, tuple(str(command)[:LONGEST] for command in data["closed"][:MOST]))
        if "state" not in data:
            return OwingHost(target, _read_keys(data["failing"]))
        state = HostState(data["state"])
        if state is HostState.WAITING:
            raise ValueError("it is of another form")
        if state is HostState.BEGUN:
            return PastHost(target, state, at, failing=_failing(data))
        return PastHost(target, state, at, _outcome(target, data))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is of another form") from error


def _failing(data: Data) -> frozenset[Key] | None:
    keys = data.get("failing")
    return None if keys is None else _read_keys(keys)


def _read_keys(keys: Any) -> frozenset[Key]:
    return frozenset((str(check)[:LONGEST], str(about)[:LONGEST]) for check, about in keys[:MOST])


def _outcome(target: str, data: Data) -> HostOutcome:
    code, run = ExitCode(data["code"]), data["run"]
    return HostOutcome(
        target,
        code,
        run=None if run is None else _run_of(target, code, run),
        problem=_text(data, "problem"),
        evidence=_text(data, "evidence"),
        remedy=_remedy_of(data),
        check_id=_text(data, "check_id"),
        untouched=Untouched.SKIPPED if data.get("untouched") is True else None,
    )


def _run_of(target: str, code: ExitCode, data: Data) -> RunReport:
    return RunReport(
        target,
        tuple(
            StepResult(_text(step, "id"), StepStatus(step["status"]), error=_text(step, "error"),
                       evidence=_text(step, "evidence"), remedy=_remedy_of(step))
            for step in data["steps"][:MOST]
        ),
        _lean_plan(target, tuple(map(_kept_of, data["kept"][:MOST])), undo=data["undo"] is True),
        _text(data, "reboot") or None,
        _text(data, "error"),
        _text(data, "evidence"),
        _remedy_of(data),
        code,
        tuple(str(text)[:LONGEST] for text in data["by_hand"][:MOST]),
    )  # fmt: skip


def _kept_of(data: Data) -> Kept:
    return Kept(
        _text(data, "id"),
        _text(data, "text"),
        refused=data["refused"] is True,
        evidence=_text(data, "evidence"),
        remedy=_remedy_of(data),
        beware=data["beware"] is True,
    )


def _remedy_of(data: Data) -> Remedy:
    remedy = data["remedy"]
    return Remedy(RepairAction(remedy["action"]), _text(remedy, "text"))


def _text(data: Data, key: str) -> str:
    value = data.get(key)
    return value[:LONGEST] if isinstance(value, str) else ""
