"""restart.sh where there is no systemd: a signal by the pid file, and scripts in /etc/init.d."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.engines.daemon import commands
from gpunode.model.facts import RuntimeFacts


def engine(*flags: str, init: str = "none") -> RuntimeFacts:
    return RuntimeFacts("docker", "26.1.5", "/etc/docker/daemon.json", "docker.service", "/s", flags=flags, init=init)


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ((), "/var/run/docker.pid"),
        (("-H", "fd://", "--pidfile", "/run/d.pid"), "/run/d.pid"),
        (("--pidfile=/run/d.pid", "-D"), "/run/d.pid"),
    ],
    ids=["docker's own", "two words", "one word"],
)
def test_the_pid_file_is_the_one_of_dockerds_flags(flags: tuple[str, ...], path: str) -> None:
    assert commands.reload(engine(*flags)).argv == ("sh", "-s", "--", path, "dockerd")


def test_with_systemd_the_unit_is_reloaded() -> None:
    assert commands.reload(engine(init="systemd")).argv == ("systemctl", "reload", "docker.service")


def hangup(pidfile: Path, name: str) -> subprocess.CompletedProcess[str]:
    script = resources.script("daemon/restart") + '\ngpunode_hangup "$@"\n'
    argv = ("sh", "-s", "--", str(pidfile), name)
    return subprocess.run(argv, input=script, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("end", ["", "\n"], ids=["as dockerd writes it, without a newline", "with one"])
def test_the_process_in_the_pid_file_gets_the_signal(tmp_path: Path, end: str) -> None:
    # Under nohup(1) tests are deaf to HUP, and so would this be.
    daemon = subprocess.Popen(["env", "--default-signal=HUP", "sleep", "30"], stdout=subprocess.DEVNULL)
    (tmp_path / "pid").write_text(f"{daemon.pid}{end}")
    while Path(f"/proc/{daemon.pid}/comm").read_text() != "sleep\n":  # its name changes after it has begun
        time.sleep(0.01)
    try:
        assert hangup(tmp_path / "pid", "sleep").returncode == 0
        assert daemon.wait(60) == -signal.SIGHUP
    finally:
        daemon.kill()


def test_another_process_that_got_the_old_number_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "30"])
    (tmp_path / "pid").write_text(str(other.pid))
    try:
        ran = hangup(tmp_path / "pid", "dockerd")
        assert (ran.returncode, ran.stderr) == (1, f"process {other.pid} of {tmp_path}/pid is not dockerd\n")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_no_pid_file_is_reported(tmp_path: Path) -> None:
    ran = hangup(tmp_path / "none", "dockerd")
    assert (ran.returncode, ran.stderr) == (1, f"{tmp_path}/none does not say which process dockerd is\n")
