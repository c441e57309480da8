"""The step at which the last setup failed, as the journal has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpunode.facts.journal import ERROR_LIMIT, parse_journal

LAGS = "download 9 packages ended with code 100: E: File has unexpected size (1 != 2). Mirror sync in progress?"


def begin(run: str = "r1", **before: object) -> dict[str, Any]:
    return {"kind": "run-begin", "run": run, "before": before}


def end(step: str, status: str = "failed", error: object = LAGS, run: str = "r1") -> dict[str, Any]:
    return {"kind": "step-end", "run": run, "step": step, "status": status, "error": error}


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([begin(), end("repo.cuda", "done"), end("driver.install"), end("repo.cuda", error="rolled back")],
         ("driver.install", LAGS)),
        ([begin(), end("driver.install", "rollback-failed")], ("driver.install", LAGS)),
        ([begin(), end("driver.install", "done")], None),
        ([begin(), end("driver.install"), begin("r2"), end("driver.install", "done", run="r2")], None),
        ([begin(), end("driver.install"), begin("u1", undo={"runs": ["r1"]}), end("driver.install", run="u1")], None),
        ([begin(), end("driver.install", run="r0")], None),
        ([end("driver.install")], None),
        ([begin(), end("driver.install", error="x" * 9999)], ("driver.install", "x" * ERROR_LIMIT)),
        ([begin(), end("driver.install", error=None)], ("driver.install", "None")),
        ([{"kind": "run-begin", "before": 7}, {"kind": "step-end", "status": ["failed"]}], None),
    ],
    ids=["first of several", "not rolled back", "done", "a later setup", "an undo", "another run's", "no run",
         "a long message", "no message", "odd entries"],
)  # fmt: skip
def test_the_last_setup_failed_at_one_step(entries: list[dict[str, Any]], found: tuple[str, str] | None) -> None:
    failed = parse_journal("\n".join(map(json.dumps, entries)), {}).failed
    assert ((failed.step, failed.error) if failed else None) == found
