from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpunode.apply.commands.detached import Ended, attach, run_detached, wait_for_running
from gpunode.apply.commands.reboot import reboot_and_wait
from gpunode.apply.journal.entries import Journal
from gpunode.apply.lock import HostLock, Owner
from gpunode.apply.script import Host, script_text
from gpunode.errors import HostLocked, StepFailed, TransportError
from gpunode.model.action import Run
from gpunode.transport.base import Completed, HostKeyRefused, PasswordRefused
from tests.apply.machine import Machine

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "sh")]


@pytest.mark.parametrize("shell", SHELLS, ids=["dash", "bash", "busybox"])
def test_output_and_exit_code_come_back(tmp_path: Path, shell: tuple[str, ...]) -> None:
    machine, on_output = Machine(tmp_path, shell), list[str]()
    run = Run(("sh", "-c", "echo one; sleep 5; echo two >&2; exit 7"), detach=True)
    ended = run_detached(Host(machine), Journal("r"), "r-a-1", run, on_output=on_output.append)
    assert (ended.code, ended.output) == (7, "one\ntwo\n")
    assert on_output == ["one"]
    assert not (machine.state / "runs" / "r-a-1" / "in").exists(), "the input may hold a password"


def test_a_killed_controller_leaves_it_running_and_the_next_one_waits(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.apply.machine import Machine\n"
        "from gpunode.apply.commands.detached import run_detached; from gpunode.apply.journal.entries import Journal\n"
        "from gpunode.apply.script import Host; from gpunode.model.plan import Run\n"
        f"run = Run(('sh', '-c', 'sleep 5; echo whole > {tmp_path}/mark'), detach=True)\n"
        f"run_detached(Host(Machine(Path({str(tmp_path)!r}))), Journal('r'), 'r-a-1', run, on_output=print)\n"
    )
    controller = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    pid = tmp_path / "state" / "runs" / "r-a-1" / "pid"
    for _ in range(100):
        if pid.exists():
            break
        time.sleep(0.1)
    os.killpg(controller.pid, signal.SIGKILL)
    controller.wait()
    assert not (tmp_path / "mark").exists()
    said: list[str] = []
    lock_of(tmp_path, 7).take()
    with pytest.raises(HostLocked, match="pid 7 on controller"):
        wait_for_running(Machine(tmp_path), on_output=said.append, lock=lock_of(tmp_path, 9))
    assert said == [], "nobody waits behind a gpunode that lives"
    assert wait_for_running(Machine(tmp_path), on_output=said.append, lock=lock_of(tmp_path, 9, alive=False)) == (
        "r-a-1",
    )
    assert (tmp_path / "mark").read_text() == "whole\n"
    assert wait_for_running(Machine(tmp_path), on_output=said.append) == ()


@pytest.mark.parametrize("shell", SHELLS, ids=["dash", "bash", "busybox"])
def test_what_a_killed_controller_left_attached_is_waited_for_as_well(tmp_path: Path, shell: tuple[str, ...]) -> None:
    """The modules are swapped that way, and the next run would do its own meanwhile."""
    machine = Machine(tmp_path, shell)
    lock_of(tmp_path, 7).take()
    text = script_text("commands/run", "token-7", "", "60", "sh", "-c", f"sleep 3; echo whole >{tmp_path}/mark")
    said: list[str] = []
    words = [*shell, "-c", machine.moved(text)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as left:
        assert left.stdin is not None
        left.stdin.write(b"\n")
        left.stdin.close()
        assert left.stdout is not None
        assert left.stdout.readline() == b"ran\n"
        with pytest.raises(HostLocked, match="pid 7 on controller"):
            wait_for_running(machine, on_output=said.append, lock=lock_of(tmp_path, 9))
        assert len(wait_for_running(machine, on_output=said.append, lock=lock_of(tmp_path, 9, alive=False))) == 1
        assert (tmp_path / "mark").read_text() == "whole\n"
    assert wait_for_running(machine, on_output=said.append) == ()
    assert os.listdir(machine.state / "runs") == []


def test_what_only_looks_leaves_no_record(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert Host(machine).run("commands/run", "", "", "60", "true", stdin=b"\n").code == 0
    assert not (machine.state / "runs").exists()


def lock_of(tmp_path: Path, pid: int, *, alive: bool = True) -> HostLock:
    return HostLock(Machine(tmp_path), Owner("controller", pid, f"token-{pid}"), lambda _: alive)


def test_one_that_is_killed_is_said_to_have_vanished(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    kill = Run(("sh", "-c", "echo last words; kill -9 $PPID"), detach=True)
    ended = run_detached(Host(machine), Journal("r"), "r-a-1", kill, on_output=lambda _: None)
    assert (ended.code, ended.output) == (None, "last words\n")


def test_one_over_its_limit_is_left_running(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    slow = Run(("sh", "-c", "echo busy; sleep 6"), detach=True, timeout_s=1)
    with pytest.raises(StepFailed, match="still runs after") as late:
        run_detached(Host(machine), Journal("r"), "r-a-1", slow, on_output=lambda _: None)
    assert "its last line is 'busy'" in late.value.evidence
    assert attach(Host(machine), "r-a-1", limit_s=60, on_output=lambda _: None).code == 0


class Cut(Machine):
    """Loses the network for some scripts once the first has run."""

    away = 0
    ran = False

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if self.ran and self.away:
            self.away -= 1
            raise TransportError("testhost: no answer within 10 s", evidence="timed out", remedy="look at the route")
        self.ran = True
        return super().run(script, stdin=stdin, timeout_s=timeout_s)


def cut(tmp_path: Path, away: int, on_output: list[str]) -> Ended:
    machine, run = Cut(tmp_path), Run(("sh", "-c", "exit 0"), detach=True)
    machine.away = away
    journal, pause = Journal("r"), list[float]().append
    return run_detached(Host(machine), journal, "r-a-1", run, on_output=on_output.append, pause=pause)


class Refuses(Machine):
    """Its second script, and each after it."""

    tries = 0
    refusal: type[TransportError] = PasswordRefused

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.tries += 1
        if self.tries > 1:
            raise self.refusal("testhost: no", evidence="it said so", remedy="give the right one")
        return Completed(0, b"boot one\n", b"", 0.0)


@pytest.mark.parametrize("refusal", [PasswordRefused, HostKeyRefused])
def test_what_was_refused_is_not_tried_again(tmp_path: Path, refusal: type[TransportError]) -> None:
    watched, booted = Refuses(tmp_path), Refuses(tmp_path)
    watched.tries, watched.refusal, booted.refusal = 1, refusal, refusal
    with pytest.raises(refusal):
        attach(Host(watched), "r-a-1", limit_s=60, on_output=print, pause=lambda _: None)
    with pytest.raises(refusal):
        reboot_and_wait(Host(booted), Journal("r"), 60, pause=lambda _: None)
    assert (watched.tries, booted.tries) == (2, 2)


def test_a_lost_connection_is_said_and_so_is_its_return(tmp_path: Path) -> None:
    said: list[str] = []
    assert cut(tmp_path, 3, said).code == 0
    lost, back = said
    assert lost.startswith("testhost: no answer within 10 s; what was begun goes on there; connecting again")
    assert back == "connected again"


def test_a_host_that_stays_away_ends_with_the_command_that_resumes(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="no answer within 10 s") as gone:
        cut(tmp_path, 10_000, [])
    assert "run gpunode setup again: it waits for that first" in gone.value.remedy.text


def test_a_quiet_command_is_said_to_be_quiet_with_its_last_line(tmp_path: Path) -> None:
    """It goes on until that was said, however long a poll takes."""
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        if len(said) == 2:
            (tmp_path / "said").touch()

    run = Run(("sh", "-c", f"echo building; until [ -e {tmp_path}/said ]; do sleep 0.2; done"), detach=True)
    run_detached(Host(Machine(tmp_path)), Journal("r"), "r-a-1", run, on_output=tell)
    assert said[0] == "building"
    assert said[1].startswith("no output for 2")
    assert said[1].endswith("its last line is 'building'; it still runs")
