"""What `gpunode check` adds to the bare probe on a GPU node: a lab host with docker, the toolkit and a stub driver.

sh tests/lab/run.sh .venv/bin/python -m tests.bench.node_check

Both run on the host itself, in turns; the best and the median of ROUNDS in milliseconds of wall time, and their ratio.
At most 1.6 x (on two cores the best was 1.4 x). Python's start and what follows the answer are added to the probe:
20 ms each; what is loaded beside it takes time from it, so a machine with something else to do shows more.
nvidia-smi is a stub that answers at once: a real one takes longer, which is the probe's time and makes the ratio less.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from gpunode.facts.probe_script import probe_script
from tests.lab.lab import Lab, why_not
from tests.lab.product_runs import Controller, expect
from tests.lab.site import ROOT, site_path

ROUNDS = 15
TIMED = f"""
now() {{ date +%s%N; }}
gpunode check >/dev/null 2>&1
round=0
while [ "$round" -lt {ROUNDS} ]; do
  round=$((round + 1))
  begin=$(now); sh -s </root/probe.sh >/root/answer 2>/dev/null; end=$(now); echo "probe $((end - begin))"
  begin=$(now); gpunode check >/root/report 2>/dev/null; end=$(now); echo "check $((end - begin))"
done
tail -n 1 /root/report
"""


def main() -> int:
    if reason := why_not():
        print(f"the lab cannot start: {reason}", file=sys.stderr)
        return 1
    with Lab() as lab, tempfile.TemporaryDirectory() as home:
        host = lab.host("debian13", gpu="h100", runtime="docker")
        expect(Controller("ssh", Path(home)).gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
        host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
        host.write("/root/probe.sh", probe_script())
        *lines, verdict = host.run(TIMED, check=True).stdout.splitlines()
    print(verdict)
    taken = {name: [int(ns) / 1e6 for what, ns in map(str.split, lines) if what == name] for name in ("probe", "check")}
    for name, of in (("best", min), ("median", statistics.median)):
        probe, check = of(taken["probe"]), of(taken["check"])
        print(f"{name:7} probe {probe:.0f} ms, check {check:.0f} ms: {check / probe:.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
