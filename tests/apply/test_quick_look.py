"""Facts in one round trip where nothing is to be waited for, and none where something is: the real probe, run here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpunode.apply.commands.detached import nothing_runs
from gpunode.converge import quick_look, settled_facts
from gpunode.transport.base import Completed
from gpunode.transport.local import Local


@dataclass
class Here:
    """This machine, with gpunode's two directories below `root`."""

    root: Path
    target: str = "here"
    scripts: list[str] = field(default_factory=list)

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.scripts.append(script)
        moved = script.replace("/var/lib/gpunode", str(self.root / "state"))
        moved = moved.replace("/run/gpunode", str(self.root / "run"))
        return Local(become="never").run(moved, stdin=stdin, timeout_s=timeout_s)

    def reconnect(self) -> None:
        pass

    def close(self) -> None:
        pass


def nothing(root: Path) -> None:
    pass


def locked(root: Path) -> None:
    (root / "run").mkdir()
    (root / "run" / "lock").write_text("somebody\n")


@pytest.mark.parametrize(
    ("before", "unlocked", "looked"),
    [(nothing, True, True), (nothing, False, True), (locked, True, False), (locked, False, True)],
    ids=["nothing", "nothing, and the lock is not asked for", "a lock", "a lock that is not asked for"],
)
def test_a_lock_is_seen(tmp_path: Path, before: Callable[[Path], None], unlocked: bool, looked: bool) -> None:
    before(tmp_path)
    here = Here(tmp_path)
    assert (quick_look(here)(nothing_runs(unlocked=unlocked)) is not None) is looked
    assert len(here.scripts) == 1


def test_a_command_that_still_runs_is_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen(("sleep", "3")) as left:
        began = Path(f"/proc/{left.pid}/stat").read_text().rpartition(")")[2].split()[19]
        directory = tmp_path / "state" / "runs" / "20261121T145501Z-1.1-x-1"
        directory.mkdir(parents=True)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        (directory / "pid").write_text(f"{left.pid} {began} {boot}\n")
        (directory / "out").write_text("")
        here, said = Here(tmp_path), list[str]()
        assert quick_look(here)(nothing_runs()) is None
        left.kill()
        left.wait()
    (directory / "rc").write_text("0\n")
    assert settled_facts(here, on_output=said.append).target == "here"
    assert said == []


TOKEN, BEGAN = "t-1", '{"kind": "step-begin", "run": "r1", "step": "s"}\n'
LINES = '{"kind": "step-end", "run": "r1", "step": "s"}\n{"kind": "run-end", "run": "r1", "error": "it\'s $HOME"}'


def ours(root: Path, token: str = TOKEN) -> None:
    for name in ("run", "state"):
        (root / name).mkdir()
    (root / "run" / "lock").write_text(f'{{"token": "{token}"}}\n')
    (root / "state" / "journal.jsonl").write_text(BEGAN)


def anothers(root: Path) -> None:
    ours(root, "t-2")


def gone(root: Path) -> None:
    ours(root)
    (root / "run" / "lock").unlink()


def no_room(root: Path) -> None:
    ours(root)
    (root / "state" / "journal.jsonl").unlink()
    (root / "state" / "journal.jsonl").mkdir()


@pytest.mark.parametrize(
    ("before", "looked"),
    [(ours, True), (anothers, False), (gone, False), (no_room, False)],
    ids=["ours", "another's lock", "a lock that is gone", "a journal that cannot be written"],
)
def test_lines_that_wait_for_the_journal_are_there_before_the_host_is_looked_at(
    tmp_path: Path, before: Callable[[Path], None], looked: bool
) -> None:
    before(tmp_path)
    found = quick_look(Here(tmp_path))(nothing_runs(token=TOKEN, lines=LINES))
    assert (found is not None) is looked
    journal = tmp_path / "state" / "journal.jsonl"
    assert journal.is_dir() or journal.read_text() == BEGAN + (LINES + "\n" if looked else "")
    if found is not None and os.geteuid() == 0:
        assert not found.journal.open_steps, "the look came after them"


def test_a_script_that_dies_before_it_says_anything_is_no_silence(tmp_path: Path) -> None:
    assert quick_look(Here(tmp_path))("kill -KILL $(exec sh -c 'echo $PPID')") is None
