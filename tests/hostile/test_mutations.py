"""Mutated recordings, key files, plans, specs and config files through every verb: only the project's own errors.

GPUNODE_MUTATIONS=10000 by hand; mutate.py says how one of them is repeated. It runs in a process of its own, whose
memory and processor time have limits, and whose every write, start and connection is watched.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MUTATIONS = int(os.environ.get("GPUNODE_MUTATIONS", "150"))
SEED = 20_261_122
MOST_MIB = 500  # at rest it is 40; a section may be megabytes


def test_whatever_is_broken_gpunode_answers_with_its_own_errors(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.hostile.mutate", str(tmp_path), str(SEED), str(MUTATIONS)]
    done = subprocess.run(
        argv, cwd=Path(__file__).parent.parent.parent, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    faults = "\n".join(line[:600] for line in lines if not line.startswith("done "))
    assert (faults, done.returncode) == ("", 0), done.stderr.decode("utf-8", "replace")[-2000:]
    word, count, peak_mib = lines[-1].split()
    assert (word, count) == ("done", str(MUTATIONS))
    assert int(peak_mib) < MOST_MIB


CRASHES = {
    "an exception": "raise RuntimeError('x')",
    "an exit code of its own": "raise SystemExit(42)",
    "a write elsewhere": "__import__('contextlib').suppress(OSError).__enter__() or open('/proc/self/none', 'w')",
    "a program": "__import__('os').system(':') or 0",
}


@pytest.mark.parametrize("does", CRASHES.values(), ids=CRASHES)
def test_the_loop_sees_what_it_is_for(does: str, tmp_path: Path) -> None:
    """A gpunode that misbehaves in each of these ways is found out by the same harness."""
    body = f"import gpunode.cli.app as app\ndef main(argv):\n    {does}\n    return 0\n"
    run = "import sys; from pathlib import Path; import tests.hostile.mutate as m; m._plans = lambda directory: []\n"
    only = "m.KINDS = (m._spec,); m._run(['--version']); app.main = main; m.main(Path(sys.argv[1]), 1, 1)\n"
    argv = [sys.executable, "-c", body + run + only, str(tmp_path)]
    done = subprocess.run(argv, cwd=Path(__file__).parent.parent.parent, capture_output=True, check=False)
    assert done.stdout.decode().startswith("1: "), done.stderr.decode()[-500:]
