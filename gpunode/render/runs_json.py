"""Earlier runs for a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpunode.model.run_record import MergedRuns, PastHost, PastRun, RunHeader, code_of
from gpunode.render.encode import dumps
from gpunode.render.failed_hosts import hosts_argument
from gpunode.render.machine import host_data, line_rows

LIST_SCHEMA = "gpunode.runs/1"
SHOWN_SCHEMA = "gpunode.run-shown/1"


def runs_json(runs: Sequence[PastRun], more: int) -> str:
    """{"schema": "gpunode.runs/1", "runs": [...], "older": 3}."""
    return dumps({"schema": LIST_SCHEMA, "runs": [_listed(run) for run in runs], "older": more}) + "\n"


def runs_lines(runs: Sequence[PastRun]) -> str:
    """One run a line."""
    return "".join(dumps({"schema": LIST_SCHEMA, **_listed(run)}, indent=None) + "\n" for run in runs)


def shown_json(merged: MergedRuns, lives: bool | None) -> str:
    """One run, or several as one."""
    failed = [host.target for host in merged.hosts if not host.done]
    data = {
        "schema": SHOWN_SCHEMA,
        "runs": [_header(header) for header in merged.headers],
        "lives": lives,
        "hosts": [_host(host) for host in merged.hosts],
        "code": int(code_of(merged.hosts)),
        "not_ended": sum(host.outcome is None for host in merged.hosts),
        "failed": hosts_argument(failed),
        "torn_lines": merged.torn,
        "overruled": [{"target": one.target, "run": one.run, "by": one.by} for one in merged.overruled],
    }
    return dumps(data) + "\n"


def shown_lines(merged: MergedRuns) -> Iterator[str]:
    """One host a line."""
    return (dumps({"schema": SHOWN_SCHEMA, **_host(host)}, indent=None) + "\n" for host in merged.hosts)


def _listed(run: PastRun) -> dict[str, Any]:
    codes = {str(code): number for code, number in run.header.codes.items()} if run.header.ended else None
    return {**_header(run.header), "lives": run.lives, "codes": codes}


def _header(header: RunHeader) -> dict[str, Any]:
    return {
        "id": header.id,
        "verb": header.verb,
        "begun": header.begun,
        "ended": header.ended or None,
        "user": header.user,
        "controller": {"host": header.controller.host, "pid": header.controller.pid},
        "hosts_count": len(header.hosts),
    }


def _host(host: PastHost) -> dict[str, Any]:
    data: dict[str, Any] = {"target": host.target, "state": host.state.value, "at": host.at or None, "code": None}
    data["closed"] = list(host.closed)
    if host.outcome is None:
        return data
    found = host_data(host.outcome, line_rows().of)  # a run keeps no checks
    if "run" in found:
        del found["run"]["plan"]  # it is not kept
    return data | found
