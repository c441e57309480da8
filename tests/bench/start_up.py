"""What gpunode costs this machine before and beside SSH: a large known_hosts, --help, the local check."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from gpunode.facts.probe_script import probe_script
from tests.bench.fleet.fleet import SHORT, Fleet
from tests.bench.measure import Row, Run, interleaved, spent

_PYTHON = sys.executable
_LINES = 10_000


def rows(fleet: Fleet, rounds: int) -> list[Row]:
    host = fleet.addresses(SHORT, 1)
    environment = fleet.environment()

    def known(others: int) -> Run:
        def run() -> dict[str, float]:
            fleet.trust(host, others)
            return spent((_PYTHON, "-m", "gpunode", "check", "--ssh", f"root@{host[0]}"), environment)

        return run

    with tempfile.TemporaryDirectory() as directory:
        probe = Path(directory, "probe.sh")
        probe.write_text(probe_script())
        runs: dict[str, Run] = {
            "known_hosts of 1 line": known(0),
            f"known_hosts of {_LINES} lines": known(_LINES),
            "--help": lambda: spent((_PYTHON, "-m", "gpunode", "--help"), environment),
            "import typer": lambda: spent((_PYTHON, "-c", "import typer"), environment),
            "check here": lambda: spent((_PYTHON, "-m", "gpunode", "check"), environment, ok=(0, 1, 6)),
            "the bare probe": lambda: spent(("sh", str(probe)), environment),
        }
        found = interleaved(runs, rounds)
    fleet.trust(host)
    one, many, page, typer, check, bare = found.values()
    more = [late - early for late, early in zip(many["cpu"], one["cpu"], strict=True)]
    return [
        Row(f"known_hosts of {_LINES} lines: CPU more than with one, ms", more, "30 ms", [0.03], 1),
        Row("--help: CPU, ms", page["cpu"], "import typer", typer["cpu"], 1.1),
        Row("check of this machine: wall, ms", check["wall"], "the bare probe", bare["wall"], 1.6),
    ]
