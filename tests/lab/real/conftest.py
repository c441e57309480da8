"""Opt-in: GPUNODE_LAB_REAL=1 (scripts/test --real). Left out, it is said loudly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab import why_not

from .prepare import DISTRIBUTIONS, is_ready

HERE = Path(__file__).parent
SWITCH = "GPUNODE_LAB_REAL"


def not_run() -> str | None:
    """Why the suite is left out, None when it runs."""
    if os.environ.get(SWITCH) != "1":
        return f"it takes long and is opt-in: {SWITCH}=1, or scripts/test --real"
    unready = [name for name in DISTRIBUTIONS if not is_ready(name)]
    if unready:
        return f"Debian's archive is not recorded for {', '.join(unready)}: run python -m tests.lab.real.prepare"
    return why_not()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = not_run()
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    if reason is None or not mine:
        return
    if os.environ.get(SWITCH) == "1":
        pytest.exit(f"THE REAL DRIVER WAS NOT BUILT: {reason}", 3)
    for item in mine:
        item.add_marker(pytest.mark.skip(reason=f"THE REAL DRIVER WAS NOT BUILT: {reason}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if reason := not_run():
        terminalreporter.section("THE REAL DRIVER WAS NOT BUILT", sep="!", red=True)
        terminalreporter.line(reason)
