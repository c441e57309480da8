"""Many hosts at once, whole processes: gpunode check against asyncssh, paramiko, Ansible, which only run the probe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from gpunode.facts.probe_script import probe_script
from tests.bench.fleet.fleet import LONG, Fleet
from tests.bench.measure import Row, Run, interleaved, spent

# In a process of its own: a run's peak counts from the memory of the process that started it, and this would be 98 MB.
_CODES = """
import json, sys
codes = [host["code"] for host in json.load(open(sys.argv[1]))["hosts"]]
print(codes.count(0), "of", len(codes))
"""
PEERS = Path(__file__).parent / "peers"
FORKS = 50
_SSH = "-o ControlMaster=auto -o ControlPersist=60s -o KexAlgorithms=curve25519-sha256"
_ANSIBLE = {
    "ANSIBLE_HOST_KEY_CHECKING": "True",
    "ANSIBLE_PIPELINING": "True",
    "ANSIBLE_FORKS": str(FORKS),
    "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
    "ANSIBLE_LOCALHOST_WARNING": "False",
}


def rows(fleet: Fleet, rounds: int, sizes: list[int], environment: Path) -> list[Row]:
    """`environment`: where the peers are installed."""
    table: list[Row] = []
    for size in sizes:
        fleet.trust(fleet.addresses(LONG, size))
        libraries = {
            "asyncssh": (str(environment / "bin/python"), str(PEERS / "with_asyncssh.py")),
            "paramiko": (sys.executable, "-m", "tests.bench.peers.many_with_paramiko"),
        }
        runs = {"gpunode": _gpunode(fleet, size)}
        runs |= {name: _library(fleet, size, one) for name, one in libraries.items()}
        if size <= 200:  # Ansible takes minutes for more
            runs["Ansible"] = _ansible(fleet, size, environment)
        runs |= {"gpunode 1": _gpunode(fleet, 1)}
        runs |= {f"{name} 1": _library(fleet, 1, one) for name, one in libraries.items()}
        table += _rows(size, interleaved(runs, rounds))
    return table


def _rows(size: int, found: dict[str, dict[str, list[float]]]) -> list[Row]:
    ours = found["gpunode"]
    each = {name: _each(found, name, size) for name in ("gpunode", "asyncssh", "paramiko")}
    table = [
        Row(f"{size} hosts: wall, s", ours["wall"], "asyncssh", found["asyncssh"]["wall"], 1.1, False, 1.0, 2),
        Row(f"{size} hosts: CPU of each more, ms", each["gpunode"], "asyncssh", each["asyncssh"], 1.1, digits=1),
        Row(f"{size} hosts: CPU of each more, ms", each["gpunode"], "plain paramiko", each["paramiko"], digits=1),
        Row(f"{size} hosts: peak memory, MB", ours["mb"], "60 MB + 0.2 MB x in flight", [60 + 0.2 * FORKS], 1, scale=1),
    ]
    if "Ansible" in found:
        wall, cpu = found["Ansible"]["wall"], found["Ansible"]["cpu"]
        table += [
            Row(f"{size} hosts: wall, s", ours["wall"], "Ansible", wall, 3.5, True, 1.0, 2),
            Row(f"{size} hosts: CPU, s", ours["cpu"], "Ansible", cpu, 9, True, 1.0, 2),
        ]
    return table


def _each(found: dict[str, dict[str, list[float]]], name: str, size: int) -> list[float]:
    """CPU seconds of a further host: without what start-up and the first one cost, in the same round."""
    pairs = zip(found[name]["cpu"], found[f"{name} 1"]["cpu"], strict=True)
    return [(many - one) / (size - 1) for many, one in pairs]


def _gpunode(fleet: Fleet, size: int) -> Run:
    hosts = ",".join(fleet.addresses(LONG, size))
    argv = (sys.executable, "-m", "gpunode", "check", "--ssh", hosts, "--forks", str(FORKS), "--format", "json")
    answer = fleet.home / "answer.json"

    def run() -> Mapping[str, float]:
        measured = spent(argv, fleet.environment(), output=answer)
        said = subprocess.run((sys.executable, "-c", _CODES, str(answer)), check=True, capture_output=True, text=True)
        if said.stdout != f"{size} of {size}\n":
            raise RuntimeError(f"{said.stdout.rstrip()} hosts were checked, of {size}")
        return measured

    return run


def _library(fleet: Fleet, size: int, program: tuple[str, ...]) -> Run:
    script = fleet.home / "probe.sh"
    script.write_text(probe_script())
    hosts = fleet.addresses(LONG, size)
    argv = (*program, str(script), str(fleet.identity), str(fleet.known_hosts), str(FORKS), *hosts)
    return lambda: spent(argv, fleet.environment())


def _ansible(fleet: Fleet, size: int, environment: Path) -> Run:
    script, inventory = fleet.home / "probe.sh", fleet.home / "hosts.ini"
    script.write_text(probe_script())
    playbook = str(PEERS / "ansible.yml")
    argv = (str(environment / "bin/ansible-playbook"), "-i", str(inventory), "-e", f"probe={script}", playbook)
    path = f"{environment}/bin:{os.environ['PATH']}"

    def run() -> Mapping[str, float]:
        inventory.write_text("".join(f"{host} ansible_user=root\n" for host in fleet.addresses(LONG, size)))
        settings = {**_ANSIBLE, "ANSIBLE_SSH_ARGS": f"-F {fleet.config} {_SSH}", "PATH": path}
        return spent(argv, {**fleet.environment(), **settings})

    return run
