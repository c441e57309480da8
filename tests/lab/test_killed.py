"""Killed at any moment, gpunode leaves no torn file, and running it again finishes the work.

The host's journal announces each act before it happens, so its length is the clock: the n-th run is killed once the
journal has grown by n lines. As n rises, every boundary between two acts of the whole setup is met.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

JOURNAL = "/var/lib/gpunode/journal.jsonl"
RUNS = 40


def start(me: Controller, host: Host, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        (sys.executable, "-m", "gpunode", "setup", "--yes", *args, "--ssh", host.name),
        env=me.env(host),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def journal_lines(host: Host) -> int:
    return len(host.read(JOURNAL).splitlines()) if host.exists(JOURNAL) else 0


def untorn(host: Host, engine: str) -> None:
    """The engine's file is absent or parses, and every journal line is whole."""
    if host.exists(JOURNAL):
        for line in host.read(JOURNAL).splitlines():
            json.loads(line)
    if engine == "docker" and host.exists("/etc/docker/daemon.json"):
        json.loads(host.read("/etc/docker/daemon.json"))
    if engine == "containerd":
        tomllib.loads(host.read("/etc/containerd/config.toml"))


def kill_controller(running: subprocess.Popen[bytes], host: Host) -> None:
    running.kill()


def kill_connection(running: subprocess.Popen[bytes], host: Host) -> None:
    """The sshd that serves the controller dies; the listening one stays."""
    host.nsrun("pkill -KILL -f '^sshd.*(root@|\\[priv\\])'")


@pytest.mark.parametrize("blow", [kill_controller, kill_connection], ids=["controller", "sshd"])
@pytest.mark.parametrize(("distribution", "engine"), [("debian12", "docker"), ("debian13", "containerd")])
def test_killed_at_every_boundary(
    lab: Lab,
    tmp_path: Path,
    distribution: str,
    engine: str,
    blow: Callable[[subprocess.Popen[bytes], Host], None],
) -> None:
    host = lab.host(distribution, gpu="h100", runtime=engine)
    me = Controller("ssh", tmp_path)
    kills = 0
    for growth in range(1, RUNS):
        before = journal_lines(host)
        running = start(me, host, "--trust-key", lab.repo_fingerprint)
        while running.poll() is None and journal_lines(host) < before + growth:
            time.sleep(0.01)
        finished = running.poll() == 0
        if running.poll() is None:
            blow(running, host)
            kills += 1
        running.wait(300)
        untorn(host, engine)
        if finished:
            break
    assert kills >= 3
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    host.reboot()
    expect(me.gpunode(host, "check"), 0)


def test_killed_inside_a_package_transaction(lab: Lab, tmp_path: Path) -> None:
    """dpkg runs as a unit of its own: it finishes although its controller is gone, and setup goes on from there."""
    host = lab.host("debian12", gpu="h100", runtime="docker")
    host.fault("dkms_slow", "6")
    me = Controller("ssh", tmp_path)
    running = start(me, host, "--trust-key", lab.repo_fingerprint)
    deadline = time.monotonic() + 120
    while host.nsrun("pgrep -f nvidia-kernel-open-dkms.postinst").returncode and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running.poll() is None, "setup ended before the transaction was seen"
    running.kill()
    running.wait()
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert host.nsrun("dpkg --audit").stdout == ""
    host.reboot()
    expect(me.gpunode(host, "check"), 0)
