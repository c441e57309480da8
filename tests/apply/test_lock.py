from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.apply.lock import HostLock, Owner, is_stale
from gpunode.apply.script import in_turn
from gpunode.errors import HostLocked, StepFailed
from tests.apply.machine import Machine

HERE = Owner("controller", 100, "t-here", "root")
SHELLS = pytest.mark.parametrize(
    "shell", [("dash",), ("bash", "--posix"), ("busybox", "sh")], ids=["dash", "bash", "busybox"]
)


@pytest.mark.parametrize(
    ("holder", "age_s", "alive", "stale"),
    [
        (Owner("controller", 7, "x"), 5, False, True),
        (Owner("controller", 7, "x"), 5, True, False),
        (Owner("elsewhere", 7, "x"), 5, False, False),
        (Owner("elsewhere", 7, "x"), 61, True, True),
        (Owner("controller", 7, "x", pids="another boot 4026531836"), 5, False, False),
        (Owner("controller", 7, "x", pids=""), 5, False, False),
    ],
    ids=[
        "dead on this controller",
        "alive here",
        "another controller's pid says nothing",
        "silent for a minute",
        "a container of the same name",
        "an older gpunode",
    ],
)
def test_a_lock_is_stale_when(holder: Owner, age_s: int, alive: bool, stale: bool) -> None:
    assert is_stale(holder, age_s, HERE, lambda _: alive) is stale


def lock(tmp_path: Path, owner: Owner, alive: bool = True) -> HostLock:
    return HostLock(Machine(tmp_path), owner, lambda _: alive)


def silent(path: Path, age_s: int = 90) -> None:
    """No heartbeat of the lock at `path` for so long."""
    os.utime(path, (time.time() - age_s,) * 2)
    beat = path.with_name("beat")
    if beat.exists():
        beat.write_text(f"{max(int(float(Path('/proc/uptime').read_text().split()[0])) - age_s, 0)}\n")


def test_our_own_lock_holds_nobody_up_whose_answer_was_lost(tmp_path: Path) -> None:
    """It was taken, or was not given back, when the connection broke."""
    lock(tmp_path, HERE).take()
    again = lock(tmp_path, HERE)
    again.peek()
    again.take()
    again.release()
    assert not (tmp_path / "run" / "lock").exists()


def test_a_second_run_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    lock(tmp_path, HERE).take()
    other = lock(tmp_path, Owner("laptop", 9, "t-other"))
    with pytest.raises(HostLocked, match=r"pid 100 on controller \(root\)"):
        other.peek()
    with pytest.raises(HostLocked):
        other.take()
    other.release()
    assert (tmp_path / "run" / "lock").exists(), "a release never removes another's lock"
    lock(tmp_path, HERE).release()
    other.take()


def test_a_silent_lock_is_taken_over_and_its_old_owner_stops(tmp_path: Path) -> None:
    old = lock(tmp_path, HERE)
    old.take()
    silent(tmp_path / "run" / "lock")
    lock(tmp_path, Owner("laptop", 9, "t-other")).take()
    with pytest.raises(HostLocked, match="took over"):
        old.host.run("files/check_drift", old.host.token)


@SHELLS
def test_a_lock_from_a_clock_that_was_ahead_is_taken_over_after_a_minute_of_silence(
    tmp_path: Path, shell: tuple[str, ...]
) -> None:
    """The battery was empty, the clock said 2031, gpunode was killed, and the time came from the network."""
    lock(tmp_path, HERE).take()
    path = tmp_path / "run" / "lock"
    os.utime(path, (time.time() + 10**8,) * 2)
    other = HostLock(Machine(tmp_path, shell), Owner("laptop", 9, "t-other"), lambda _: True)
    other.peek()
    with pytest.raises(HostLocked, match=r"pid 100 on controller .*"):
        other.take()
    with pytest.raises(HostLocked):
        other.peek()
    silent(path)
    other.peek()
    other.take()
    assert "t-other" in path.read_text()


@SHELLS
@pytest.mark.parametrize("beaten", ["at its take", "by a script", "while a command runs"])
def test_a_clock_that_is_set_forward_makes_no_living_holder_stale(
    tmp_path: Path, shell: tuple[str, ...], beaten: str
) -> None:
    """A machine without a battery: the time comes from the network, an hour later than it was."""
    machine, path = Machine(tmp_path, shell), tmp_path / "run" / "lock"
    ours = HostLock(machine, HERE, lambda _: True)
    ours.take()
    if beaten != "at its take":
        path.with_name("beat").write_text("0\n")
    if beaten == "by a script":
        ours.keep()
    elif beaten == "while a command runs":
        script = resources.script("common").replace("sleep 10", "sleep 1") + "heartbeat t-here; sleep 3"
        subprocess.run([*shell, "-c", machine.moved(script)], check=True)
    os.utime(path, (time.time() - 3600,) * 2)
    other = HostLock(machine, Owner("laptop", 9, "t-other"), lambda _: True)
    with pytest.raises(HostLocked):
        other.peek()
    with pytest.raises(HostLocked):
        other.take()
    silent(path)
    other.take()
    other.release()
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("beat", ["", "soon\n", "-5\n", "9" * 30 + "\n", "089\n", "999999999\n"])
@SHELLS
def test_a_beat_that_cannot_be_one_leaves_the_clock_to_count(tmp_path: Path, shell: tuple[str, ...], beat: str) -> None:
    path = tmp_path / "run" / "lock"
    lock(tmp_path, HERE).take()
    silent(path)
    path.with_name("beat").write_text(beat)
    HostLock(Machine(tmp_path, shell), Owner("laptop", 9, "t-other"), lambda _: True).take()
    assert "t-other" in path.read_text()


@pytest.mark.parametrize("text", ["", "not ours\n", "\n\n", '{"pid": 1}\nmore\n', "a 'quote' $HOME \\n"], ids=range(5))
@SHELLS
def test_a_silent_lock_that_nobody_can_read_is_taken_over(tmp_path: Path, shell: tuple[str, ...], text: str) -> None:
    path = tmp_path / "run" / "lock"
    path.parent.mkdir()
    path.write_text(text)
    ours = HostLock(Machine(tmp_path, shell), HERE, lambda _: True)
    with pytest.raises(HostLocked):
        ours.take()
    os.utime(path, (time.time() - 90,) * 2)
    ours.take()
    assert "t-here" in path.read_text()
    assert os.listdir(path.parent).count("lock") == len([n for n in os.listdir(path.parent) if n.startswith("lock")])


def unfinished(root: Path) -> Path:
    """What check_drift.sh takes away."""
    copy = root / "state" / "backup" / "r0" / "copy.part"
    copy.parent.mkdir(parents=True)
    copy.write_text("half of it")
    return copy


@SHELLS
def test_what_comes_first_under_the_lock_comes_along_with_it(tmp_path: Path, shell: tuple[str, ...]) -> None:
    copy, file = unfinished(tmp_path), tmp_path / "a 'file' $HOME"
    machine = Machine(tmp_path, shell)
    answer = HostLock(machine, HERE, lambda _: True).take(("files/check_drift", str(file), ""))
    assert answer is not None
    assert answer.stdout == b"files\nabsent\ndirectories\nbackup/r0\njournal\n"
    assert len(machine.scripts) == 1
    assert "t-here" in (tmp_path / "run" / "lock").read_text()
    assert not copy.exists()


@SHELLS
@pytest.mark.parametrize("owner", ["taken", "", '{"pid": 1}\ntaken'], ids=["its word", "empty", "its word below"])
def test_what_comes_first_under_the_lock_does_not_run_without_it(
    tmp_path: Path, shell: tuple[str, ...], owner: str
) -> None:
    copy, path = unfinished(tmp_path), tmp_path / "run" / "lock"
    path.parent.mkdir()
    path.write_text(owner + "\n")
    ours = HostLock(Machine(tmp_path, shell), HERE, lambda _: True)
    with pytest.raises(HostLocked):
        ours.take(("files/check_drift",))
    assert copy.exists()
    os.utime(path, (time.time() - 90,) * 2)
    assert ours.take(("files/check_drift",)) is None, "a silent one is replaced; nothing more is done on the way"
    assert copy.exists()
    assert "t-here" in path.read_text()


@SHELLS
@pytest.mark.parametrize("reply", ["taken", "takes", "taken\nheld"])
def test_of_two_scripts_the_second_runs_after_one_reply_alone(
    tmp_path: Path, shell: tuple[str, ...], reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the second script would find out by itself."""
    texts = {"first": f"printf '%s\\n' '{reply}'\n", "second": "echo ran\n"}
    monkeypatch.setattr("gpunode.apply.script.resources.script", lambda name: texts.get(name, ""))
    done = Machine(tmp_path, shell).run(in_turn(("first",), "taken", ("second",)), timeout_s=10)
    assert done.stdout.decode() == f"{reply}\n" + ("ran\n" if reply == "taken" else "")


def test_a_lock_that_cannot_be_made_is_told_as_before(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("no directory\n")
    with pytest.raises(StepFailed, match=r"cannot make .*run"):
        lock(tmp_path, HERE).take(("files/check_drift",))


class Full(Machine):
    """A host on which no file takes a byte."""

    def moved(self, script: str) -> str:
        return "trap '' XFSZ; ulimit -f 0\n" + super().moved(script)


@SHELLS
def test_a_lock_that_finds_no_room_says_so_and_leaves_nothing(tmp_path: Path, shell: tuple[str, ...]) -> None:
    with pytest.raises(StepFailed, match=r"cannot write .*/run/lock\.\d+: File too large$"):
        HostLock(Full(tmp_path, shell), HERE, lambda _: True).take()
    assert os.listdir(tmp_path / "run") == []


def test_a_stale_lock_that_another_run_took_meanwhile_stays_its_own(tmp_path: Path) -> None:
    lock(tmp_path, HERE).take()
    late = lock(tmp_path, Owner("laptop", 9, "t-other"))
    before = (tmp_path / "run" / "lock").stat()
    assert late._ask("break", "what was there before", late._text())[0] == "held"
    after = (tmp_path / "run" / "lock").stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns), "moved, if for a moment"
    lock(tmp_path, HERE).keep()


def test_a_lock_that_went_with_a_reboot_is_nobody_elses(tmp_path: Path) -> None:
    ours = lock(tmp_path, HERE)
    ours.take()
    (tmp_path / "run" / "lock").unlink()
    with pytest.raises(HostLocked, match="the host was rebooted"):
        ours.host.run("files/check_drift", ours.host.token)


def test_every_script_is_a_heartbeat(tmp_path: Path) -> None:
    ours = lock(tmp_path, HERE)
    ours.take()
    path = tmp_path / "run" / "lock"
    os.utime(path, (1, 1))
    ours.host.run("files/check_drift", ours.host.token)
    assert time.time() - path.stat().st_mtime < 30


@SHELLS
def test_a_beat_while_the_lock_is_given_back_makes_no_new_one(tmp_path: Path, shell: tuple[str, ...]) -> None:
    """A script whose connection was cut reads its own token, and then the controller removes the lock."""
    path = tmp_path / "lock"
    path.write_text('{"token": "t-here"}\n')
    given_back = 'cat() { command cat "$@"; rm -f "$lock"; }\n'
    script = resources.script("common").replace("/run/gpunode/lock", str(path)) + given_back + "keep_lock t-here"
    subprocess.run([*shell, "-c", script], check=True)
    assert not path.exists(), "nobody owns an empty lock, and everybody waits for it"
