"""Killed at any moment, gpunode leaves no torn file, and running it again finishes the work.

The host's journal announces each act before it happens, so it is the clock: whoever waits for an act that was never
met before, and strikes then, meets every boundary between two acts of the whole setup.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpunode.apply.journal.entries import open_steps, parse_journal

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

JOURNAL = "/var/lib/gpunode/journal.jsonl"
CONFIGS = ("/etc/docker/daemon.json", "/etc/containerd/config.toml")
RUNS = 60  # more than a setup has acts
EVERY = (0, 1)
WIDE = pytest.mark.wide
MOMENTS_S = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)  # after a write was announced
SESSIONS = "/sys/fs/cgroup/user.slice/user-0.slice/session-*.scope/cgroup.procs"

Act = tuple[str, str]
Running = subprocess.Popen[bytes]
Version = tuple[int, int, int] | None  # of a file: inode, size, time of its last change in nanoseconds


def start(me: Controller, host: Host, *args: str) -> Running:
    me.home.mkdir(exist_ok=True)
    with (me.home / "stderr").open("wb") as said:
        return subprocess.Popen(
            (sys.executable, "-m", "gpunode", "setup", "--yes", *args, "--ssh", host.name),
            env=me.env(host),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )


def kill_controller(running: Running, host: Host) -> bool:
    running.kill()
    return True


def kill_connection(running: Running, host: Host) -> bool:
    """The sshd that serves the controller dies (Debian 13 calls it sshd-session); the listening one stays.

    False where there is none: what was cut off a moment ago may still announce an act while the controller dials.
    """
    return host.nsrun("pkill -KILL -f '^sshd(-session)?: root'").returncode == 0


def kill_session(host: Host) -> None:
    """sshd, the script it runs and all its children at once, as when the power goes."""
    host.nsrun(f"kill -KILL $(cat {SESSIONS})")


@dataclass
class Witness:
    """What the host's journal announced so far, and every state in which a config file was ever seen."""

    host: Host
    seen: dict[str, set[str]] = field(default_factory=dict)
    known: dict[str, Version] = field(default_factory=dict)

    def entries(self) -> list[dict[str, Any]]:
        """Of the lines that are whole: the last one may be half-way through its write."""
        text = self.host.read(JOURNAL) if self.host.exists(JOURNAL) else ""
        return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]

    def acts(self) -> set[Act]:
        return {
            (entry["step"], entry.get("path") or json.dumps(entry["argv"]))
            for entry in self.entries()
            if entry["kind"] in ("file", "command")
        }

    def look(self) -> bool:
        """At what has changed since the last look; whether the journal is among it."""
        now = {path: version(self.host, path) for path in (JOURNAL, *CONFIGS)}
        changed = {path for path in now if path not in self.known or self.known[path] != now[path]}
        self.known = now
        for path in changed - {JOURNAL}:
            self.seen.setdefault(path, set()).add(digest(self.host, path))
        return JOURNAL in changed

    def assert_untorn(self) -> None:
        """A file is what it was before a write, or what the write announced; nothing between was ever there."""
        allowed: dict[str, set[str]] = {}
        for entry in self.entries():
            if entry["kind"] == "file":
                allowed.setdefault(entry["path"], set()).update((entry["before"], entry["after"]))
        for path, hashes in allowed.items():
            torn = {digest(self.host, path), *self.seen.get(path, set())} - hashes
            assert not torn, f"{path} was {torn}, which nobody announced; now it is\n{self.host.read(path)}"


def version(host: Host, path: str) -> Version:
    try:
        found = host.path(path).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def digest(host: Host, path: str) -> str:
    try:
        return hashlib.sha256(host.path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        return "absent"


@pytest.mark.parametrize(
    ("distribution", "engine", "blow", "strikes"),
    [
        pytest.param("debian12", "docker", kill_controller, EVERY, id="controller-debian12-docker"),
        pytest.param("debian13", "containerd", kill_connection, EVERY, id="sshd-debian13-containerd"),
        # Half the boundaries each, for time; together they meet all.
        pytest.param("debian-sid", "containerd", kill_controller, (0, 2), id="controller-sid-containerd", marks=WIDE),
        pytest.param("debian-sid", "docker", kill_connection, (1, 2), id="sshd-sid-docker", marks=WIDE),
    ],
)
def test_killed_at_every_boundary(
    lab: Lab,
    tmp_path: Path,
    distribution: str,
    engine: str,
    blow: Callable[[Running, Host], bool],
    strikes: tuple[int, int],
) -> None:
    """strikes (first, every): (0, 1) strikes at each act that was not met before, (1, 2) at the second, fourth ..."""
    host = lab.host(distribution, gpu="h100", runtime=engine)
    me, witness = Controller("ssh", tmp_path), Witness(host)
    witness.look()
    met: set[Act] = set()
    boundaries = itertools.count()
    struck = 0
    for _ in range(RUNS):
        running = start(me, host, "--trust-key", lab.repo_fingerprint)
        while running.poll() is None:
            if witness.look() and (new := witness.acts() - met):
                met |= new
                if next(boundaries) % strikes[1] == strikes[0]:
                    struck += blow(running, host)
            time.sleep(0.005)
        witness.assert_untorn()
        said = (tmp_path / "stderr").read_text()
        assert running.returncode in (0, 3, -9), f"exit {running.returncode} after {len(met)} acts:\n{said}"
        if running.returncode == 0:
            break
    assert running.returncode == 0, "it never came to its end"
    assert len(met) > 20
    assert struck > len(met) / strikes[1] / 2, "most boundaries were not struck"
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert host.nsrun("dpkg --audit; find /etc -name '.*.gpunode'").stdout == ""
    assert open_steps(parse_journal(host.read(JOURNAL))) == {}, "a cut-off step is still open after all is done"
    host.reboot()
    expect(me.gpunode(host, "check"), 0)


def test_a_config_file_is_old_or_new_whenever_its_write_is_killed(lab: Lab, tmp_path: Path) -> None:
    """The script that writes dies too, in the middle of its work; only the rename decides."""
    host = lab.host("debian12", gpu="h100", runtime="docker")
    me, path = Controller("ssh", tmp_path), CONFIGS[1]
    old = host.read(path)
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    new, mode = host.read(path), host.path(path).stat().st_mode
    cut_off = 0
    for moment_s in MOMENTS_S:
        host.write(path, old)
        before = len(host.read(JOURNAL))
        running = start(me, host, "--only", "runtime")
        while running.poll() is None and f'"path": "{path}"' not in host.read(JOURNAL)[before:]:
            time.sleep(0.002)
        assert running.poll() is None, (tmp_path / "stderr").read_text()
        time.sleep(moment_s)
        kill_session(host)
        running.kill()
        running.wait()
        assert host.read(path) in (old, new), f"torn {moment_s} s after it was announced:\n{host.read(path)}"
        assert host.path(path).stat().st_mode == mode
        cut_off += host.read(path) == old
    assert cut_off, "no kill came before the rename"
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert host.read(path) == new
    assert host.nsrun("find /etc -name '.*.gpunode'").stdout == ""


CONNECTION = "pgrep -f '^sshd(-session)?: root'"
POSTINST = "pgrep -f '[n]vidia-kernel-open-dkms.postinst'"


def in_a_transaction(lab: Lab, me: Controller) -> tuple[Host, Running]:
    """A host whose dpkg configures the kernel module until "dkms_held" is lifted, and the gpunode that asked for it."""
    host = lab.host("debian12", gpu="h100", runtime="docker")
    host.fault("dkms_held")
    return host, until_at_work(host, start(me, host, "--trust-key", lab.repo_fingerprint))


def until_at_work(host: Host, running: Running) -> Running:
    wait_until(lambda: host.nsrun(POSTINST).returncode == 0)
    assert running.poll() is None, "setup ended before the transaction was seen"
    return running


def wait_until(seen: Callable[[], bool], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not seen():
        assert time.monotonic() < deadline, f"not seen within {limit_s:.0f} s"
        time.sleep(0.05)


def assert_finished(lab: Lab, me: Controller, host: Host) -> None:
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert host.nsrun("dpkg --audit").stdout == ""
    host.reboot()
    expect(me.gpunode(host, "check"), 0)


def test_the_controller_dies_inside_a_package_transaction(lab: Lab, tmp_path: Path) -> None:
    """dpkg runs as a unit of its own: it goes on, and the next setup waits for it instead of planning half-way."""
    me = Controller("ssh", tmp_path)
    host, running = in_a_transaction(lab, me)
    running.kill()
    running.wait()
    again = start(me, host, "--trust-key", lab.repo_fingerprint)
    wait_until(lambda: "which an earlier gpunode started" in (tmp_path / "stderr").read_text())
    host.fault("dkms_held", False)
    assert again.wait(120) == 0, (tmp_path / "stderr").read_text()
    assert "packages.repair" not in host.read(JOURNAL)
    assert_finished(lab, me, host)


def test_sshd_dies_inside_a_package_transaction(lab: Lab, tmp_path: Path) -> None:
    """The same gpunode comes back to the running transaction and ends as if nothing had been."""
    me = Controller("ssh", tmp_path)
    host, running = in_a_transaction(lab, me)
    refused_at_once(lab, host, [Controller("ssh", tmp_path / name) for name in ("second", "third")])
    cut = host.nsrun(CONNECTION, check=True).stdout.split()
    assert kill_connection(running, host)
    wait_until(lambda: bool(set(host.nsrun(CONNECTION).stdout.split()) - set(cut)))
    host.fault("dkms_held", False)
    assert running.wait(120) == 0, (tmp_path / "stderr").read_text()
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert host.nsrun("dpkg --audit").stdout == ""
    reboot_at_work(lab, me, host)


def refused_at_once(lab: Lab, host: Host, others: Sequence[Controller]) -> None:
    """Whoever comes while another gpunode works is told who that is, and changes nothing."""
    crowd = [start(other, host, "--trust-key", lab.repo_fingerprint) for other in others]
    assert [running.wait(60) for running in crowd] == [8] * len(crowd)
    for other in others:
        assert "another gpunode is at work on this host: pid" in (other.home / "stderr").read_text()


def reboot_at_work(lab: Lab, me: Controller, host: Host) -> None:
    """A reboot waits for a transaction that is at work, and not for a process that a package's script left behind."""
    host.fault("dkms_slow", "8")
    host.fault("dkms_leaves")
    running = until_at_work(host, start(me, host, "--driver", "580", "--trust-key", lab.repo_fingerprint))
    host.reboot()
    assert host.nsrun("dpkg --audit").stdout == ""
    assert host.nsrun("tail -qn 1 /var/lib/gpunode/runs/*/rc | sort -u").stdout == "0\n", "it was cut, not waited for"
    assert running.wait(120) == 8
    assert "the host was rebooted" in (me.home / "stderr").read_text()
    expect(me.gpunode(host, "setup", "--yes", "--driver", "580", "--trust-key", lab.repo_fingerprint), 0)
    expect(me.gpunode(host, "check"), 0)


def kill_transaction(host: Host) -> None:
    host.nsrun("systemctl kill -s KILL 'gpunode-*.service'", check=True)
    host.fault("dkms_held", False)
    host.nsrun("while pgrep -x dpkg; do sleep 0.05; done")


def test_dpkg_itself_dies(lab: Lab, tmp_path: Path) -> None:
    """The way back lets dpkg finish what it had begun, without which apt takes nothing away; then the driver goes."""
    me = Controller("ssh", tmp_path)
    host, running = in_a_transaction(lab, me)
    before = host.nsrun("ls /var/lib/dpkg/updates", check=True).stdout
    assert before, "dpkg was killed at a moment that apt does not mind"
    kill_transaction(host)
    assert running.wait(120) == 1, (tmp_path / "stderr").read_text()
    assert "vanished without an exit code" in (tmp_path / "stderr").read_text()
    assert host.nsrun("dpkg --audit").stdout == ""
    assert host.nsrun("dpkg-query -W -f '${Status}' nvidia-open").stdout != "install ok installed"
    assert_finished(lab, me, host)


def test_dpkg_and_the_controller_die(lab: Lab, tmp_path: Path) -> None:
    """As when the power goes: what dpkg left half-configured is finished first by the next setup."""
    me = Controller("ssh", tmp_path)
    host, running = in_a_transaction(lab, me)
    running.kill()
    running.wait()
    kill_transaction(host)
    assert host.nsrun("dpkg --audit").stdout
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert "packages.repair" in host.read(JOURNAL)
    assert_finished(lab, me, host)

    # What else a power cut leaves: dpkg flushes no configuration file, and apt selects before it removes.
    pin = host.nsrun("ls -d /etc/apt/preferences.d/nvidia-driver-pinning-*", check=True).stdout.strip()
    text = host.read(pin)
    host.write(pin, "")
    host.nsrun("echo dkms deinstall | dpkg --set-selections", check=True)
    told = expect(me.gpunode(host, "check"), 1).stdout
    assert "dkms is half removed and nvidia-driver-pinning" in " ".join(told.split())
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    assert host.read(pin) == text
    assert host.nsrun("dpkg --get-selections dkms").stdout.split() == ["dkms", "install"]
    expect(me.gpunode(host, "check"), 0)
