"""A link that is down, an sshd that is killed, a controller that is killed: each in the midst of package transactions.

dpkg of each of the three hosts, of three Debian releases, configures a kernel module until the test lets it go on.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fleet import JOURNAL, Fleet, Run, assert_whole, hold, lift, start_side_by_side, until_in_a_transaction
from .host import Host
from .lab import Lab
from .product_runs import expect

HOSTS = {"a": ("debian12", "docker"), "b": ("debian13", "containerd"), "c": ("debian-sid", "docker")}
DOWN_S = 20.0
FOUND = tuple(rf"^{name}  waiting for \S+, which an earlier gpunode started$" for name in HOSTS)


@pytest.fixture(scope="module")
def lab(lab_session: Lab) -> Iterator[Lab]:
    yield lab_session
    lab_session.reset()


@pytest.fixture(scope="module")
def hosts(lab: Lab) -> tuple[Host, ...]:
    made = tuple(
        lab.host(distribution, gpu="h100", runtime=engine, name=name, start=False)
        for name, (distribution, engine) in HOSTS.items()
    )
    start_side_by_side(made)
    return made


@pytest.fixture
def fleet(hosts: tuple[Host, ...], tmp_path: Path) -> Iterator[Fleet]:
    several = Fleet(hosts, tmp_path)
    yield several
    several.end()
    lift(hosts)


def in_transactions(lab: Lab, fleet: Fleet, *words: str) -> Run:
    """A setup of all of them, each in its transaction until `lift`."""
    hold(fleet.hosts)
    run = fleet.start("setup", "--yes", *words, "--trust-key", lab.repo_fingerprint, "--ssh", fleet.names)
    until_in_a_transaction(fleet.hosts, run)
    return run


def answers(host: Host) -> bool:
    with socket.socket() as dialled:
        dialled.settimeout(2.0)
        return dialled.connect_ex((host.addr, host.port)) == 0


def test_a_link_down_for_20_s_and_a_killed_sshd_end_as_if_nothing_had_been(lab: Lab, fleet: Fleet) -> None:
    run = in_transactions(lab, fleet)
    unplugged, shot = fleet["a"], fleet["b"]
    unplugged.unplug()
    shot.nsrun("pkill -KILL '^sshd'", check=True)  # the listening one too, which systemd starts again
    assert not answers(unplugged)
    time.sleep(DOWN_S)
    unplugged.plug_in()
    run.until("^b  (connected again|unreachable|failed)")
    assert "b  connected again\n" in run.said()
    lift(fleet.hosts)

    assert "3 hosts: 3 done (0)" in expect(run.ended(), 0).stdout
    assert "packages.repair" not in "".join(host.read(JOURNAL) for host in fleet.hosts)
    assert_whole(fleet.hosts)
    assert "3 hosts: 3 done (0)" in expect(fleet.gpunode("setup", "--yes"), 0).stdout


def test_a_killed_controller_is_attached_to_and_then_resumed(lab: Lab, fleet: Fleet) -> None:
    run_id = killed(in_transactions(lab, fleet, "--driver", "580"), fleet)
    journals = [host.read(JOURNAL) for host in fleet.hosts]

    watching = fleet.start("setup", "--attach", run_id)
    watching.until(*FOUND)
    lift(fleet.hosts)
    told = " ".join(expect(watching.ended(), 1).stdout.split())
    assert "what was at work has ended; left to do: " in told
    assert f"gpunode setup --resume {run_id} does the rest" in told
    assert [host.read(JOURNAL) for host in fleet.hosts] == journals, "who only watches begins nothing"

    expect(fleet.start("setup", "--resume", run_id, "--yes").ended(), 0)
    assert shown(fleet, run_id) == dict.fromkeys(HOSTS, ("ended", 0))
    assert_whole(fleet.hosts)


def test_a_killed_controller_is_resumed_while_its_transactions_are_at_work(lab: Lab, fleet: Fleet) -> None:
    run_id = killed(in_transactions(lab, fleet, "--driver", "595"), fleet)

    again = fleet.start("setup", "--resume", run_id, "--yes")
    again.until(*FOUND)
    lift(fleet.hosts)
    expect(again.ended(), 0)
    assert "packages.repair" not in "".join(host.read(JOURNAL) for host in fleet.hosts)
    assert shown(fleet, run_id) == dict.fromkeys(HOSTS, ("ended", 0))
    assert_whole(fleet.hosts)


def killed(run: Run, fleet: Fleet) -> str:
    """The id of the run, whose controller is no more."""
    run.process.kill()
    run.process.wait()
    (run_id,) = (path.name for path in (fleet.home / "state/gpunode/runs").iterdir())
    assert shown(fleet, run_id) == dict.fromkeys(HOSTS, ("at-work", None))
    return run_id


def shown(fleet: Fleet, run_id: str) -> dict[str, tuple[str, int | None]]:
    """Host -> its state and exit code, as `runs show` has them."""
    text = fleet.start("runs", "show", run_id, "--json").ended().stdout
    return {host["target"]: (host["state"], host.get("code")) for host in json.loads(text)["hosts"]}
