"""JSON that other programs rely on: an envelope with `schema`, plural keys for lists, and plans that load again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gpunode.errors import GpunodeError, UsageError
from gpunode.foreign import NotRead, read_json
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, CheckResult, Event, Finding, HostOutcome, NotApplicable
from gpunode.render.clean import clean_json
from gpunode.render.decode import REMEDY, from_data, shortened
from gpunode.render.encode import dumps, listed, to_data, written
from gpunode.render.indented import Written, indented

PLAN_SCHEMA = "gpunode.plan/3"  # 3: host and driver are data; 2 had lines of text for them, 1 no name of the host

# What each verb prints; docs/reference/json.md describes it. A new key keeps the number, a removed key raises it.
RESULTS = {
    "detect": "gpunode.detect-result/2",  # the last step of each: `remedy` is an object where text was
    "plan": "gpunode.plan-result/3",  # 2: `about` and `driver` where lines of text were
    "setup": "gpunode.setup-result/3",
    "undo": "gpunode.undo-result/3",
    "check": "gpunode.check-result/2",
    "fix": "gpunode.fix-result/1",  # `check --fix`
}
ERROR_SCHEMA = "gpunode.error/2"
EVENT_SCHEMA = "gpunode.event/1"


def plan_to_json(plan: Plan) -> str:
    """One plan, to be saved and applied: the bytes of its files, with their secrets. A proxy's password is left out."""
    return dumps({"schema": PLAN_SCHEMA, "plan": plan}, secrets=True) + "\n"


def plan_from_json(text: str) -> Plan:
    """The plan that `plan_to_json` wrote. Raises UsageError that names the place of the first fault."""
    try:
        data = read_json(text, own=True, unique=True)
    except NotRead as error:
        raise UsageError("this is not a plan gpunode saved", evidence=f"not JSON: {error}", remedy=REMEDY) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != PLAN_SCHEMA:
        raise UsageError("this is not a plan gpunode saved", evidence=_other_schema(schema), remedy=REMEDY)
    if unknown := sorted(set(data) - {"schema", "plan"}):
        raise UsageError("this is not a plan gpunode saved", evidence=f"{unknown[0][:60]}: no such key", remedy=REMEDY)
    plan = from_data(Plan, data.get("plan"), "plan")
    assert isinstance(plan, Plan)
    return plan


def _other_schema(schema: object) -> str:
    if schema in RESULTS.values():
        return "--json printed it, for reading: what is secret in its files is masked; --save keeps what setup needs"
    older = schema in ("gpunode.plan/1", "gpunode.plan/2")
    why = "an older gpunode saved it" if older else f"schema is {shortened(schema)}"
    return f"{why}; {PLAN_SCHEMA} is wanted"


def hosts_json(verb: str, outcomes: Iterable[HostOutcome], *, seconds_s: float) -> Iterator[str]:
    """The result of a verb, host by host: {"schema": "gpunode.check-result/2", "hosts": [...], "seconds_s": 3.1}."""
    rows = _Rows(lambda data: written(data, _ROW), f"[{_ROW}", f",{_ROW}", _ROW[:-2] + "]")
    hosts = (clean_json(indented(_host(outcome, rows), "  ", "\n    ")) for outcome in outcomes)
    return listed({"schema": RESULTS[verb]}, "hosts", hosts, {"seconds_s": round(seconds_s, 3)})


_ROW = "\n" + " " * 8  # where a check stands in it


def host_line(verb: str, outcome: HostOutcome, rows: _Rows | None = None) -> str:
    """One host as one JSON line. `rows`: of those that are written one after the other, the same for each."""
    data = {"schema": RESULTS[verb], **_host(outcome, rows or line_rows())}
    pairs = (
        f"{json.dumps(key)}: {value if type(value) is Written else _in_line(value)}" for key, value in data.items()
    )
    return clean_json(f"{{{', '.join(pairs)}}}\n")


def line_rows() -> _Rows:
    """For `host_line`."""
    return _Rows(lambda data: Written(clean_json(_in_line(to_data(data)))), "[", ", ", "]")


def _in_line(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


class _Rows:
    """Checks as JSON. A result that hosts share (model/alike.py) is written once, for each place where it stands."""

    _MOST = 4096  # results that are remembered; those of a fleet whose hosts are alike are a few hundred

    def __init__(self, write: Callable[[Any], Written], begin: str, between: str, end: str) -> None:
        self._write, self._begin, self._between, self._end = write, begin, between, end
        self._written: dict[int, tuple[CheckResult, Written]] = {}  # by id(), which is the result's while it is held

    def of(self, report: CheckReport) -> Written:
        held = self._written
        rows = [found[1] if (found := held.get(id(one))) else self._row(one) for one in report.results.values()]
        return Written(f"{self._begin}{self._between.join(rows)}{self._end}" if rows else "[]")

    def _row(self, result: CheckResult) -> str:
        text = self._write(_check(result))
        if len(self._written) < self._MOST:
            self._written[id(result)] = result, text
        return text


def _host(outcome: HostOutcome, rows: _Rows) -> dict[str, Any]:
    data: dict[str, Any] = to_data(host_data(outcome, rows.of))
    return data


def event_json(event: Event, *, at: str) -> str:
    """One event as one JSON line; `at` is ISO 8601."""
    return dumps({"schema": EVENT_SCHEMA, "at": at, **to_data(event)}, indent=None) + "\n"


def host_data(outcome: HostOutcome, checks: Callable[[CheckReport], Any]) -> dict[str, Any]:
    """target, code, whichever of facts, plan, checks and run there is, and the problem where it failed. `checks`: how
    their rows are written.
    """
    out: dict[str, Any] = {"target": outcome.target, "code": int(outcome.code)}
    if outcome.problem:
        out |= {"problem": outcome.problem, "evidence": outcome.evidence, "remedy": outcome.remedy}
        out["check_id"] = outcome.check_id or None
        out["untouched"] = outcome.untouched
    if outcome.left_out:
        out["left_out_why"] = outcome.left_out
    if outcome.facts is not None:
        out["facts"] = to_data(outcome.facts)
    if outcome.plan is not None:
        out["plan"] = to_data(outcome.plan)
    if outcome.run is not None:
        out["run"] = to_data(outcome.run)
    if outcome.check is not None:
        out["checks"] = checks(outcome.check)
        out["profile"] = to_data(outcome.check.profile)
        out["idle_acknowledgements"] = list(outcome.check.idle)
    if outcome.before is not None:
        out["findings_before"] = list(outcome.before.findings)
        out["gone"] = list(outcome.gone)
    return out


def _check(result: CheckResult) -> dict[str, Any]:
    row: dict[str, Any] = {"id": result.id, "severity": result.severity.value, "foreign": result.foreign}
    match result.outcome:
        case None:
            row |= {"outcome": "pass"} | ({"evidence": result.evidence} if result.evidence else {})
        case NotApplicable(reason, left_out):
            row |= {"outcome": "not-applicable", "reason": reason, "left_out": left_out}
        case Finding() as finding:
            row |= {"severity": result.found.value, "outcome": "finding"}
            row |= {k: v for k, v in to_data(finding).items() if k != "severity"}
    return row


def error_json(error: GpunodeError, *, line: bool = False) -> str:
    """What went wrong, for a program that asked for JSON; `line`: in one line."""
    body = {"code": int(error.code), "problem": error.problem, "evidence": error.evidence, "remedy": error.remedy}
    return dumps({"schema": ERROR_SCHEMA, **body}, indent=None if line else 2) + "\n"
