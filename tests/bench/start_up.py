"""What gpunode costs this machine before and beside SSH: a large known_hosts, --help, the local check."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpunode.facts.probe_script import probe_script
from gpunode.transport.known_hosts import parse
from tests.bench.fleet.fleet import SHORT, Fleet
from tests.bench.measure import Row, Run, interleaved, spent, timed

_PYTHON = sys.executable
_GPUNODE = str(Path(_PYTHON).with_name("gpunode"))  # what is typed
_LINES = 10_000


def rows(fleet: Fleet, rounds: int) -> list[Row]:
    host = fleet.addresses(SHORT, 1)
    environment = fleet.environment()

    fleet.trust(host, _LINES)
    many_hosts = fleet.known_hosts.read_text()
    with tempfile.TemporaryDirectory() as directory:
        probe = Path(directory, "probe.sh")
        probe.write_text(probe_script())
        runs: dict[str, Run] = {
            "known_hosts read": lambda: _least(lambda: parse([("known_hosts", many_hosts)]).keys(host[0])),
            "known_hosts split": lambda: _least(lambda: [line.split() for line in many_hosts.split("\n")]),
            "--help": lambda: spent((_GPUNODE, "--help"), environment),
            "import typer": lambda: spent((_PYTHON, "-c", "import typer"), environment),
            "check here": lambda: spent((_GPUNODE, "check"), environment, ok=(0, 1, 6)),
            "the bare probe": lambda: spent(("sh", str(probe)), environment),
        }
        found = interleaved(runs, rounds)
    fleet.trust(host)
    read, split, page, typer, check, bare = found.values()
    return [
        Row(f"known_hosts of {_LINES} lines: CPU, ms", read["cpu"], "30 ms", [0.03], 1),
        Row(f"known_hosts of {_LINES} lines: CPU, ms", read["cpu"], "all its words, by split()", split["cpu"]),
        Row("--help: CPU, ms", page["cpu"], "import typer", typer["cpu"], 1.1),
        Row("check of this machine: wall, ms", check["wall"], "the bare probe", bare["wall"], 1.6),
    ]


def _least(work: Callable[[], object], tries: int = 20) -> dict[str, float]:
    """Of some tries in this process: as the difference of two processes it is mostly noise."""
    return min((timed(work) for _ in range(tries)), key=lambda found: found["cpu"])
