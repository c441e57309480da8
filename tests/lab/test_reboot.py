"""A GPU that nouveau holds is free only after a reboot: who reboots, who goes on afterwards, and who leaves it be."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .site import ROOT, site_path
from .test_killed import start

RESUME = "/etc/systemd/system/gpunode-resume.service"
WANTS = "/etc/systemd/system/multi-user.target.wants/gpunode-resume.service"
RESUMED_S = 180.0


def held_by_nouveau(lab: Lab, distribution: str, engine: str) -> Host:
    host = lab.host(distribution, gpu="h100", runtime=engine, start=False)
    host.fault("nouveau")
    host.start()
    assert host.nsrun("readlink -f /sys/bus/pci/devices/*/driver").stdout.strip().endswith("/nouveau")
    return host


def test_over_ssh_the_controller_reboots_waits_and_goes_on(lab: Lab, tmp_path: Path) -> None:
    host = held_by_nouveau(lab, "debian12", "docker")
    me = Controller("ssh", tmp_path)
    boots, boot_id = host.boots, host.boot_id()

    expect(me.gpunode(host, "setup", "--yes", "--reboot", "if-needed", "--trust-key", lab.repo_fingerprint), 0)

    assert host.boots == boots + 1
    assert host.boot_id() != boot_id
    assert not host.exists(RESUME)
    expect(me.gpunode(host, "check"), 0)


def test_on_the_host_itself_a_unit_goes_on_and_removes_itself(lab: Lab) -> None:
    host = held_by_nouveau(lab, "debian13", "containerd")
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    me = Controller("local", Path("/"))
    boots = host.boots

    said = expect(me.gpunode(host, "setup", "--yes", "--reboot", "if-needed", "--trust-key", lab.repo_fingerprint), 6)
    assert "gpunode-resume" in said.stdout
    host.wait_for_boot(boots)
    journal = wait_for_the_resumed_run(host)

    assert host.boots == boots + 1, journal
    assert host.nsrun("systemctl list-unit-files --no-legend 'gpunode*'").stdout == ""
    assert not host.exists(RESUME)
    assert not host.path(WANTS).is_symlink()
    assert host.nsrun("find /root/.local/state/gpunode -name 'resume*'").stdout == ""
    assert "this host matches the spec" in journal
    assert "Finished gpunode-resume.service" in journal
    expect(me.gpunode(host, "check"), 0)


@pytest.mark.parametrize("controller_dies", [False, True], ids=["the host alone", "the controller too"])
def test_the_power_goes_while_the_host_comes_up_again(lab: Lab, tmp_path: Path, controller_dies: bool) -> None:
    """Whoever waits goes on after the next boot; whoever was killed goes on when setup is run again."""
    host = held_by_nouveau(lab, "debian13", "containerd")
    me = Controller("ssh", tmp_path)
    boots = host.boots
    words = ("--reboot", "if-needed", "--trust-key", lab.repo_fingerprint)
    running = start(me, host, *words)
    until(lambda: host.boots == boots + 1 or running.poll() is not None)
    assert running.poll() is None, (me.home / "stderr").read_text()
    if controller_dies:
        running.kill()
    host.kill()
    host.start()
    host.nsrun("systemctl is-system-running --wait")

    code = running.wait(RESUMED_S)

    assert code == (-signal.SIGKILL if controller_dies else 0), (me.home / "stderr").read_text()
    again = expect(me.gpunode(host, "setup", "--yes", *words), 0)
    if not controller_dies:
        assert "no changes" in again.stdout
    assert host.boots == boots + 2, "one that gpunode asked for and one after the cut"
    expect(me.gpunode(host, "check"), 0)


def until(happened: Callable[[], bool], limit_s: float = RESUMED_S) -> None:
    end = time.monotonic() + limit_s
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)


def test_with_policy_never_nothing_reboots_and_the_remedy_is_shown(lab: Lab, tmp_path: Path) -> None:
    host = held_by_nouveau(lab, "debian12", "containerd")
    boots, boot_id = host.boots, host.boot_id()

    result = Controller("ssh", tmp_path).gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint)

    said = expect(result, 6).stdout
    assert "nouveau holds" in said
    assert "--reboot if-needed" in said
    assert (host.boots, host.boot_id()) == (boots, boot_id)
    assert not host.exists(RESUME)


def wait_for_the_resumed_run(host: Host) -> str:
    """The resumed run's own words, once it has ended."""
    end = time.monotonic() + RESUMED_S
    while time.monotonic() < end:
        state = host.nsrun("systemctl show gpunode-resume.service -p ActiveState --value").stdout.strip()
        if state in ("inactive", "failed") and not host.exists(RESUME):
            return host.nsrun("journalctl -b -o cat --no-pager -u gpunode-resume.service").stdout
        time.sleep(0.3)
    journal = host.nsrun("systemctl status -l --no-pager -n 60 gpunode-resume.service").stdout
    raise AssertionError(f"gpunode-resume did not end within {RESUMED_S:.0f} s\n{journal}")
