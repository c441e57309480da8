"""The site's own checks of one host, added to gpunode's report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpunode.model.report import CheckOutcome, CheckReport, CheckResult, NotApplicable, Severity
from gpunode.site_checks.answer import outcome_of
from gpunode.site_checks.directory import ProgramCheck, SiteCheck
from gpunode.site_checks.program import LIMIT_S, Ended, run_program

TOTAL_S = 30.0  # all programs together: what calls `check` (Slurm: 60 s) has a limit as well
ELSEWHERE = "a program of the site is run only where gpunode runs, for that machine itself"

Run = Callable[[tuple[str, ...], bytes, float], Ended]


def with_site_checks(
    report: CheckReport,
    checks: Sequence[SiteCheck],
    facts: Mapping[str, Any],
    *,
    stdin: bytes | None,
    run: Run = run_program,
    now: Callable[[], float] = time.monotonic,
) -> CheckReport:
    """`facts`: as `detect --json` prints them; `stdin`: what programs are given, None where none may be run.

    gpunode's own results stay as they are: this comes last, and an id of the site's begins with "site.".
    """
    results = dict(report.results)
    left_s = TOTAL_S
    for check in checks:
        begin = now()
        outcome, severity = _judged(check, facts, stdin, left_s, run)
        left_s -= now() - begin
        results[check.id] = CheckResult(check.id, severity, outcome, foreign=check.file)
    return replace(report, results=results)


def _judged(
    check: SiteCheck, facts: Mapping[str, Any], stdin: bytes | None, left_s: float, run: Run
) -> tuple[CheckOutcome, Severity]:
    if not isinstance(check, ProgramCheck):
        return check.judge(facts), check.severity
    if stdin is None:
        return NotApplicable(ELSEWHERE), Severity.ERROR
    if left_s <= 0:
        return NotApplicable(f"unknown: not run, since the programs before it took {TOTAL_S:.0f} s"), Severity.ERROR
    return outcome_of(run((check.file,), stdin, min(LIMIT_S, left_s)), check.file), Severity.ERROR
