"""One host over SSH, against a script with plain paramiko in the same process: time, and round trips."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from itertools import count

from gpunode.apply.lock import HostLock
from gpunode.cli.app import main
from gpunode.converge import Convergence, HostRun, quick_look
from gpunode.errors import ExitCode
from gpunode.facts.collect import collect
from gpunode.facts.probe_script import probe_script
from gpunode.fleet.apply_one import is_alive, lock_owner
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshOptions, SshTarget
from tests.bench.fleet.fleet import LONG, RTT_S, SHORT, Fleet
from tests.bench.measure import Row, Run, interleaved, timed
from tests.bench.peers.with_paramiko import Script

# What a host without GPU and engine is asked to be: nothing, so there is nothing to do.
NOTHING = ("--allow-no-gpu", "--driver", "none", "--toolkit", "none", "--runtime", "none")
_PATH = "/etc/gpunode-bench.conf"
_TEXT = "# " + "x" * 10_000 + "\n{}\n"
_numbers = count()


def verb(fleet: Fleet, name: str, host: str, *words: str) -> None:
    """A verb as it is typed, in this process."""
    argv = [name, "--ssh", host, "--user", "root", "--identity", str(fleet.identity), *words]
    said = io.TextIOWrapper(io.BytesIO())
    with redirect_stdout(said), redirect_stderr(said):
        code = main(argv)
    if code:
        raise RuntimeError(f"gpunode {name} ended with {code}: {said.buffer.getvalue().decode()}")


def one_file(fleet: Fleet, host: str) -> None:
    """A plan of one file, converged as setup does: lock, drift, journal, write, and facts again."""
    text = _TEXT.format(next(_numbers))
    done: list[str] = []

    def decide(facts: HostFacts, steps_done: frozenset[str]) -> Plan:
        done.extend(steps_done)
        step = Step("bench.file", "write one file", "it differs", (PutFile(_PATH, text, any_before=True),))
        return Plan(host, Spec(), "", steps=() if steps_done else (step,), replan_after=not steps_done)

    options = SshOptions(
        home=fleet.home,
        config=(),
        known_hosts=(fleet.known_hosts,),
        identities=(fleet.identity,),
        agent=False,
        several=True,
    )
    transport = Ssh(SshTarget(host, "root", 22), options)
    try:
        lock = HostLock(transport, lock_owner(), is_alive)
        run = HostRun("bench", transport, lock, lambda event: None, lambda: False)
        quick = quick_look(transport)
        report = Convergence(run, lambda: collect(transport), decide, RebootPolicy.NEVER, quick=quick).run()
        if report.code is not ExitCode.DONE or not done:
            raise RuntimeError(f"the file was not written: {report.error}")
    finally:
        transport.close()


def rows(fleet: Fleet, rounds: int) -> list[Row]:
    host, near = (fleet.addresses(subnet, 1)[0] for subnet in (LONG, SHORT))
    fleet.trust((host, near))  # paramiko takes seconds for a long known_hosts, which is another measure
    script = Script(fleet.known_hosts, fleet.identity, probe_script())
    works: dict[str, Callable[[], object]] = {
        "check": lambda: verb(fleet, "check", host),
        "paramiko check": lambda: script.check(host),
        "check 0 ms": lambda: verb(fleet, "check", near),
        "setup, nothing to do": lambda: verb(fleet, "setup", host, "--yes", *NOTHING),
        "paramiko unchanged": lambda: script.unchanged(host),
        "one file": lambda: one_file(fleet, host),
        "paramiko one file": lambda: script.one_file(host, _PATH, _TEXT.format(next(_numbers)).encode()),
    }
    for work in works.values():
        work()  # what is loaded once is loaded now
    found = interleaved({name: _counted(fleet, work) for name, work in works.items()}, rounds)
    wall = {name: values["wall"] for name, values in found.items()}
    floor = [5 * RTT_S + near_s for near_s in wall["check 0 ms"]]
    pairs = (("check", "paramiko check", 0.7), ("setup, nothing to do", "paramiko unchanged", 0.45))
    return [
        Row("check, 1 host, 50 ms, in-process, ms", wall["check"], "5 round trips + own 0 ms", floor, 1.35),
        *_both(found, (*pairs, ("one file", "paramiko one file", 0.45))),
    ]


def _both(found: dict[str, dict[str, list[float]]], pairs: tuple[tuple[str, str, float], ...]) -> list[Row]:
    table = []
    for ours, theirs, goal in pairs:
        for measure, unit, scale, digits in (
            ("wall", "ms", 1e3, 0),
            ("turns", "round trips", 1.0, 0),
            ("sent", "KB", 1e-3, 0),
            ("cpu", "client CPU, ms", 1e3, 0),
        ):
            what = f"{ours}, 1 host, 50 ms: {unit}"
            mine, yours = found[ours][measure], found[theirs][measure]
            table.append(Row(what, mine, theirs, yours, goal if measure == "wall" else None, False, scale, digits))
    return table


def _counted(fleet: Fleet, work: Callable[[], object]) -> Run:
    def run() -> Mapping[str, float]:
        fleet.counts()
        measured = timed(work)
        return {**measured, **fleet.counts()}

    return run
