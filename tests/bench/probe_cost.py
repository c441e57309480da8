"""What the probe costs a host, and what `gpunode check` adds to it: on this machine, in turns, in one run.

python -m tests.bench.probe_cost [PROBE.sh ...]

Forks and execs of every shell that runs the probe, counted by strace(1); then the time of the bare probe, of
`gpunode check` of this machine, and of each PROBE.sh: another probe, which an earlier gpunode prints with
`python -c "from gpunode.facts.collect import probe_script; print(probe_script())"`.
The best of ROUNDS, as processor time (with the children's) and wall time; ratios are to the bare probe.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpunode.facts.probe_script import probe_script

ROUNDS = 15
SHELLS = (("dash",), ("bash",), ("busybox", "ash"))
CALLS = "clone,clone3,fork,vfork,execve"
_FORK = re.compile(r"(?:clone3?|v?fork)(?:\(.*| resumed.*)= [0-9]+$")
_EXEC = re.compile(r"execve(?:\(.*| resumed.*)= 0$")


def counted(shell: Sequence[str], script: Path) -> tuple[int, int]:
    """(forks, execs), the shell's own start included."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "strace")
        argv = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(log), *shell, "-s"]
        with script.open() as text:
            subprocess.run(argv, stdin=text, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = log.read_text(errors="replace").splitlines()
    return sum(bool(_FORK.search(line)) for line in lines), sum(bool(_EXEC.search(line)) for line in lines)


def spent(argv: Sequence[str], stdin: Path) -> tuple[float, float]:
    """(processor seconds, wall seconds) of one run. `check` may exit 1: it found something."""
    before, began = os.times(), time.monotonic()
    with stdin.open() as text:
        subprocess.run(argv, stdin=text, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.monotonic() - began, os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, wall


def main(others: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "probe.sh")
        own.write_text(probe_script(), encoding="utf-8")
        for script in (own, *others):
            for shell in (shell for shell in SHELLS if shutil.which(shell[0]) and shutil.which("strace")):
                forks, execs = counted(shell, script)
                print(f"{script.name:20} {' '.join(shell):12} {forks:4} forks {execs:4} execs")
        runs = {
            "bare probe": (["sh", "-s"], own),
            "gpunode check": ([sys.executable, "-m", "gpunode", "check"], Path("/dev/null")),
            **{script.name: (["sh", "-s"], script) for script in others},
        }
        best = {name: (float("inf"), float("inf")) for name in runs}
        for _ in range(ROUNDS):
            for name, (argv, stdin) in runs.items():
                cpu, wall = spent(argv, stdin)
                best[name] = (min(best[name][0], cpu), min(best[name][1], wall))
    bare = best["bare probe"]
    for name, (cpu, wall) in best.items():
        print(f"{name:20} cpu {cpu:.3f} s ({cpu / bare[0]:.2f} x)  wall {wall:.3f} s ({wall / bare[1]:.2f} x)")


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
