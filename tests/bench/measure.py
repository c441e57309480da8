"""Runs in turns, what they cost, and the table of what came out."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[], Mapping[str, float]]  # one run: measure -> value


def interleaved(runs: Mapping[str, Run], rounds: int) -> dict[str, dict[str, list[float]]]:
    """run -> measure -> a value of each round. In each round every run has its turn: all meet the same weather."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            print(f"  round {number + 1}/{rounds}: {name}", file=sys.stderr, flush=True)
            for measure, value in run().items():
                found[name].setdefault(measure, []).append(value)
    return found


def shown(values: Sequence[float], scale: float = 1.0, digits: int = 0) -> str:
    """ "MEDIAN (LEAST-MOST)"."""
    low, middle, high = (scale * value for value in (min(values), statistics.median(values), max(values)))
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


@dataclass(frozen=True)
class Row:
    """One line of the table: ours against theirs, and the goal of their ratio."""

    what: str
    ours: Sequence[float]
    peer: str
    theirs: Sequence[float]
    goal: float | None = None
    at_least: bool = False  # the goal is how many times theirs is ours; else how much of theirs ours may be
    scale: float = 1e3
    digits: int = 0

    def line(self) -> str:
        ours, theirs = statistics.median(self.ours), statistics.median(self.theirs)
        ratio = theirs / ours if self.at_least else ours / theirs
        goal, met = "", ""
        if self.goal is not None:
            good = ratio >= self.goal if self.at_least else ratio <= self.goal
            goal, met = f"{'≥' if self.at_least else '≤'} {self.goal:g}", "yes" if good else "no"
        values = (shown(one, self.scale, self.digits) for one in (self.ours, self.theirs))
        return f"| {self.what} | {next(values)} | {self.peer} | {next(values)} | {ratio:.2f} | {goal} | {met} |"


HEAD = "| measure | gpunode | against | theirs | ratio | goal | met |\n|---|---|---|---|---|---|---|"


def timed(work: Callable[[], object]) -> dict[str, float]:
    """Wall and processor seconds of `work` in this process, its threads included."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def spent(
    argv: Sequence[str], environment: Mapping[str, str], *, ok: Sequence[int] = (0,), output: Path | None = None
) -> dict[str, float]:
    """Wall seconds, processor seconds and peak memory in MB of a process with all that it started and left behind.

    Raises RuntimeError, with the end of what it said, when its exit status is none of `ok`.
    """
    ours = _children()
    with tempfile.TemporaryFile() as said, open(output, "wb") if output else nullcontext(said) as out:
        begin = time.perf_counter()
        process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read()[-800:].decode("utf-8", "replace")
    cpu = usage.ru_utime + usage.ru_stime + _ended(_children() - ours)
    if process.returncode not in ok:
        raise RuntimeError(f"{' '.join(argv)[:200]} ended with {process.returncode}: {words}")
    return {"wall": wall, "cpu": cpu, "mb": usage.ru_maxrss / 1024}


def _children() -> set[int]:
    """Of process 1, which the bench is in its own process namespace: what a run left behind is its child as well."""
    own = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    return set(map(int, Path(own).read_text().split())) if os.getpid() == 1 else set()


def _ended(left: set[int]) -> float:
    """ssh's masters that Ansible leaves to its next run: ended, and their processor seconds."""
    cpu = 0.0
    for pid in left:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGTERM)
            usage = os.wait4(pid, 0)[2]
            cpu += usage.ru_utime + usage.ru_stime
    return cpu
