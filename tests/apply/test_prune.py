"""What old runs left on the host goes; what an undo would read stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import sha256
from gpunode.apply.journal.entries import parse_journal
from gpunode.apply.journal.history import still_needed
from gpunode.apply.journal.prune import KEPT_RUNS, stale
from gpunode.model.action import PutFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import Spec
from tests.apply.machine import Machine

NOW = "20261121T145501Z-4711"
MANY = [f"20261120T{hour:02}{minute:02}00Z-9" for hour in range(20) for minute in range(6)]


@pytest.mark.parametrize(
    ("directories", "gone"),
    [
        (["runs/20261022T145502Z-1.1-driver.install-3", "backup/20261022T145502Z-1.1"], []),
        (
            [
                "runs/20261022T145459Z-1.1-driver.install-3",
                "backup/20261022T145459Z-1.1",
                "runs/20261120T000000Z-2.1-x-1",
            ],
            ["runs/20261022T145459Z-1.1-driver.install-3", "backup/20261022T145459Z-1.1"],
        ),
        ([f"runs/{run}.1-a-1" for run in MANY], [f"runs/{run}.1-a-1" for run in MANY[:-KEPT_RUNS]]),
        ([f"backup/{MANY[0]}.{n}" for n in range(KEPT_RUNS + 9)], []),
        (["runs/by-hand", "backup/2019", "runs/20190101T000000Z", "runs/20190101T000000Z-1x"], []),
    ],
    ids=["a day less than 30", "over 30 days", "all but the last 50", "passes of one run", "names nobody here gave"],
)
def test_stale(directories: list[str], gone: list[str]) -> None:
    assert stale(directories, f"{NOW}.1") == tuple(gone)


def test_a_run_whose_id_tells_no_time_prunes_by_number_alone() -> None:
    assert stale(["runs/19990101T000000Z-1.1-a-1"], "r1") == ()


def setup(machine: Machine, run_id: str, path: Path, text: str) -> None:
    """One run that rewrites a file and runs a detached command."""
    expect = sha256(path.read_bytes()) if path.exists() else None
    put = PutFile(str(path), text, expect_sha256=expect)
    step = Step("docker.default", "t", "", (put, Run(("echo", text), detach=True)))
    plan = Plan("testhost", Spec(), "", steps=(step,))
    execute(plan, machine, run_id=run_id, on_event=lambda _: None, stop=lambda: False)


def test_old_runs_go_and_the_bytes_that_an_undo_would_read_stay(tmp_path: Path) -> None:
    machine, path = Machine(tmp_path), tmp_path / "daemon.json"
    path.write_text("the admin's")
    for day, text in (("01", "first"), ("02", "second")):
        setup(machine, f"202609{day}T000000Z-1.1", path, text)
    part = machine.state / "backup" / "20260902T000000Z-1.1" / "x.part"
    part.write_text("a truncated copy")
    runs = machine.state / "runs"
    cut_off = runs / "20260903T000000Z-1.1-a-1"  # no process, no exit code
    cut_off.mkdir()
    assert len(list(runs.iterdir())) == 3
    setup(machine, f"{NOW}.1", path, "third")
    assert [directory.name for directory in runs.iterdir()] == [f"{NOW}.1-docker.default-1"]
    needed = [Path(name) for name in still_needed(parse_journal(machine.journal)) if Path(name).name != "packages"]
    assert {backup.read_text() for backup in needed} >= {"the admin's"}
    assert not part.exists()
    assert sorted(f for f in (machine.state / "backup").rglob("*") if f.is_file()) == sorted(needed)


def test_backups_without_a_journal_stay(tmp_path: Path) -> None:
    """Nobody can say what they are for."""
    machine = Machine(tmp_path)
    backup = machine.state / "backup" / "20200101T000000Z-1.1" / "etc-docker-daemon.json.0f"
    out = machine.state / "runs" / "20200101T000000Z-1.1-a-1" / "out"
    for file in (backup, out):
        file.parent.mkdir(parents=True)
        file.write_text("text")
    setup(machine, f"{NOW}.1", tmp_path / "new", "text")
    assert backup.exists()
    assert not out.parent.exists()


def test_a_command_that_still_runs_keeps_its_directory(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    directory = machine.state / "runs" / "20200101T000000Z-1.1-a-1"
    directory.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (directory / "pid").write_text(f"1 1 {boot}\n")
    setup(machine, f"{NOW}.1", tmp_path / "new", "text")
    assert (directory / "pid").exists()
