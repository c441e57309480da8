"""check --unit: a service and a timer, installed as a person would, run by systemd on a booted host."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.render.exposition import Samples, read_metrics

from .host import Host
from .lab import Lab
from .site import ROOT

METRICS = "/var/lib/node-exporter/gpunode.prom"
UNITS = "/etc/systemd/system"
INSTALL = f"""set -e
mkdir -p /var/lib/node-exporter {UNITS}/gpunode-check.timer.d
gpunode check --format prometheus --output {METRICS} --unit service >{UNITS}/gpunode-check.service
gpunode check --unit timer >{UNITS}/gpunode-check.timer
systemd-analyze verify {UNITS}/gpunode-check.service {UNITS}/gpunode-check.timer
"""
# As `systemctl edit gpunode-check.timer` leaves it: the interval, and a first run that is not waited for.
SOONER = """[Timer]
OnBootSec=
OnUnitInactiveSec=
OnActiveSec=1s
OnUnitInactiveSec=2s
RandomizedDelaySec=0
AccuracySec=1s
"""
WAIT_S = 240


def until(host: Host, true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end, host.nsrun("systemctl status gpunode-check.timer gpunode-check.service").stdout
        time.sleep(0.5)


def metrics(host: Host) -> Samples:
    return read_metrics(host.read(METRICS))


def ended(host: Host) -> float:
    return metrics(host)["gpunode_last_check_timestamp_seconds", frozenset()]


def test_the_timer_runs_the_check_again_and_again(lab: Lab, gpunode_site: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    host.install_gpunode(ROOT, gpunode_site)
    installed = host.run(INSTALL)
    assert (installed.returncode, installed.stderr) == (0, "")
    host.write(f"{UNITS}/gpunode-check.timer.d/override.conf", SOONER)
    host.run("systemctl daemon-reload && systemctl enable --now gpunode-check.timer", check=True)

    until(host, lambda: host.exists(METRICS))
    first = ended(host)
    assert host.path(METRICS).stat().st_mode & 0o777 == 0o644
    samples = metrics(host)
    assert samples["gpunode_host_checked", frozenset({("host", host.name)})] == 1
    # A GPU without a driver: found by a service of systemd as by a person.
    assert samples["gpunode_check_status", frozenset({("host", host.name), ("id", "drv.module-loaded")})] == 2
    assert samples["gpunode_check_exit_code", frozenset({("host", host.name)})] == 1
    until(host, lambda: ended(host) > first)

    # A finding fails the unit, and the timer goes on nevertheless.
    until(host, lambda: "gpunode-check.service" in host.run("systemctl --failed --plain --no-legend").stdout)
    assert host.run("systemctl is-active gpunode-check.timer").stdout == "active\n"
    host.run("systemctl disable --now gpunode-check.timer", check=True)
    until(host, lambda: host.run("systemctl is-active gpunode-check.service").stdout != "activating\n")
    left = host.nsrun(
        "ls -A /run | grep gpunode-probe; ls -A /var/lib/node-exporter; pgrep -fa '[g]punode check'"
    ).stdout
    assert left == "gpunode.prom\n"
