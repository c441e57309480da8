"""The probe on many hosts with plain paramiko: many_with_paramiko PROBE IDENTITY KNOWN_HOSTS FORKS HOST..."""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.peers.with_paramiko import Script


def main(probe: Path, identity: Path, known_hosts: Path, forks: int, hosts: list[str]) -> None:
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
    script = Script(known_hosts, identity, probe.read_text())
    with ThreadPoolExecutor(forks) as pool:
        list(pool.map(script.check, hosts))


if __name__ == "__main__":
    _, *files, in_flight = sys.argv[:5]
    main(Path(files[0]), Path(files[1]), Path(files[2]), int(in_flight), sys.argv[5:])
