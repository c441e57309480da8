"""The bench: one table, in Markdown. scripts/bench starts it in namespaces of its own."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import datetime, timezone
from pathlib import Path

from tests.bench import gpu_here, many_hosts, one_host, simulated, start_up
from tests.bench.fleet.fleet import Fleet
from tests.bench.measure import HEAD, Row

PARTS = ("one", "many", "start")
ON_REQUEST = ("simulated",)  # 5,000 hosts, in a process that is timed on its own


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often everything takes its turn (default 5)")
    parser.add_argument("--hosts", default="50,200", help="sizes of the fleets, with commas (default 50,200)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join((*PARTS, *ON_REQUEST))}")
    parser.add_argument("--peers", type=Path, required=True, help=argparse.SUPPRESS)  # where they are installed
    chosen = parser.parse_args(words)
    table: list[Row] = []
    load = os.getloadavg()[0]
    with Fleet() as fleet:
        os.environ.update(fleet.environment())  # in-process runs read ~/.ssh as well
        if "one" in chosen.only:
            table += one_host.rows(fleet, chosen.rounds)
        if "many" in chosen.only:
            table += many_hosts.rows(
                fleet, chosen.rounds, [int(word) for word in chosen.hosts.split(",")], chosen.peers
            )
        if "start" in chosen.only:
            table += start_up.rows(fleet, chosen.rounds)
            table += gpu_here.rows(chosen.rounds, fleet.environment())
        if "simulated" in chosen.only:
            table += simulated.rows(chosen.rounds)
    when = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    print(f"{when}, {os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after, ", end="")
    print(
        f"Linux {platform.release()}, Python {platform.python_version()}, {chosen.rounds} rounds; median (least-most)\n"
    )
    print(HEAD, *(row.line() for row in table), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
