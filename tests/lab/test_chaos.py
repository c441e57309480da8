"""Random cuts of setup, another branch, undo and undo --packages: two further runs at most bring the host there.

    GPUNODE_CHAOS=200 GPUNODE_CHAOS_SEED=7 tests/lab/run.sh python -m pytest -s -q tests/lab/test_chaos.py

GPUNODE_CHAOS: how many cuts, a few where it is not set. GPUNODE_CHAOS_SEED: what the walks' seeds begin with; a failure
names its walk's seed, and GPUNODE_CHAOS_WALK=SEED walks that one alone.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .chaos import Bare, Walker, fresh_host, log_line, walk
from .lab import Lab
from .product_runs import Controller

CUTS = int(os.environ.get("GPUNODE_CHAOS", "4"))
SEED = os.environ.get("GPUNODE_CHAOS_SEED", "0")
WALK = os.environ.get("GPUNODE_CHAOS_WALK")
DISK_MIB = 1500


@dataclass
class Tally:
    log: Path
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    cuts: int = 0


def test_any_cut_is_finished_by_two_further_runs(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker", disk=DISK_MIB)
    host.nsrun("systemctl is-system-running --wait")
    host.stop()
    host.snapshot("bare")
    host.start()
    host.nsrun("systemctl is-system-running --wait")
    walker = Walker(host, Controller("ssh", tmp_path / "home"), Bare.of(host), lab.repo_fingerprint)
    tally = Tally(Path(os.environ.get("GPUNODE_CHAOS_LOG", tmp_path / "cuts.log")))
    number = 0
    while tally.cuts < CUTS and not (WALK and number):
        one_walk(walker, WALK or f"{SEED}-{number}", tally)
        number += 1
    print(dict(sorted(tally.counts.items())))
    assert not tally.failures, "\n\n".join(tally.failures)


def one_walk(walker: Walker, seed: str, tally: Tally) -> None:
    for number, cut in enumerate(walk(seed)):
        begin = time.monotonic()
        try:
            outcome = walker.go(cut)
        except (AssertionError, subprocess.TimeoutExpired, TimeoutError) as error:
            tally.failures.append(f"walk {seed}, {number}: {cut}\n{error}\n{walker.said}")
            outcome = f"FAILED {error}"
        took = time.monotonic() - begin
        log_line(tally.log, f"{seed}.{number} {took:.0f} s: {cut}: {outcome}")
        word = outcome.split()[0].rstrip(",")
        tally.cuts += word != "missed"
        tally.counts[f"{cut.deed.name}, {cut.kind}: {word}"] += 1
        if word == "FAILED":
            log_line(tally.log, walker.said)
            fresh_host(walker.host)
            return
        if tally.cuts >= CUTS:
            return
