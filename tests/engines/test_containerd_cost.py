"""What it costs to add the handler to a large configuration, in calls: no clock is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import gpunode
from tests.bench.toml_rewrite import CRI, HEAD, TABLE
from tests.engines.test_containerd import rewrite

OURS = str(Path(gpunode.__file__).parent)  # the TOML reader is another on each Python, and is not counted
MOST = 30  # calls for a line; the scan takes six of them


def calls(work: Callable[[], object]) -> int:
    counted = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and frame.f_code.co_filename.startswith(OURS)

    other = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(other)
    return counted


def test_a_line_that_stays_as_it_is_costs_few_calls() -> None:
    small, large = (HEAD + "".join(TABLE.replace("{}", str(n)) for n in range(tables)) + CRI for tables in (50, 550))
    more = calls(lambda: rewrite(large)) - calls(lambda: rewrite(small))
    lines = large.count("\n") - small.count("\n")
    assert 0 < more / lines <= MOST, more / lines
