"""What an undo reads on a host: the journal of real runs, real backups, real files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import sha256
from gpunode.apply.journal.past import read_past
from gpunode.apply.journal.snapshot import before_values
from gpunode.errors import ConfigFileError, StepFailed
from gpunode.model.action import Action, PutFile, RemoveFile, Run
from gpunode.model.facts import (
    HostFacts,
    KernelFacts,
    OsFacts,
    RuntimeFacts,
    ServiceFacts,
)
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.past import ABSENT, Past
from gpunode.model.plan import ForUndo, Plan, Step, Undoing
from gpunode.model.report import StepStatus
from gpunode.model.spec import Spec
from gpunode.planner.undo.files import Back, rollback
from tests.apply.machine import Machine

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "sh")]
DOCKER = RuntimeFacts("docker", "28", "/etc/docker/daemon.json", "docker.service", "/run/docker.sock")
HOST = HostFacts("testhost", "testhost", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def setup(
    machine: Machine, run_id: str, *actions: Action, step: str = "docker.default", host: HostFacts = HOST
) -> StepStatus:
    """One run of one step through the real executor."""
    plan = Plan("testhost", Spec(), "", steps=(Step(step, "title", "why", actions),))
    return carry_out(machine, run_id, plan, host)


def carry_out(machine: Machine, run_id: str, plan: Plan, host: HostFacts = HOST) -> StepStatus:
    before: dict[str, Any] = before_values(host, plan)
    results = execute(
        plan, machine, run_id=run_id, on_event=lambda _: None, stop=lambda: False, before=before, pause=lambda _: None,
        manager=host.packages.manager,
    )  # fmt: skip
    return results[0].status


def put(path: Path, text: str) -> PutFile:
    return PutFile(str(path), text, expect_sha256=sha256(path.read_bytes()) if path.exists() else None)


def config(tmp_path: Path, text: str = "old") -> Path:
    path = tmp_path / "daemon.json"
    path.write_text(text)
    path.chmod(0o640)
    return path


def names(past: Past) -> Sequence[str]:
    return [Path(f.path).name for f in past.files]


def test_no_journal_is_a_past_without_anything(machine: Machine) -> None:
    assert read_past(machine) == Past()
    assert not machine.state.exists()


@pytest.mark.parametrize("shell", SHELLS, ids=["dash", "bash", "busybox"])
def test_a_file_is_known_as_it_was_as_it_was_left_and_as_it_is(shell: tuple[str, ...], tmp_path: Path) -> None:
    machine = Machine(tmp_path, shell)
    path = config(tmp_path)
    path.write_bytes(b"old \xff bytes\n")
    setup(machine, "r1", put(path, "mine"))
    setup(machine, "r2", put(path, "mine again"))
    (file,) = read_past(machine).files
    assert (file.old, file.now.text, file.mode, file.owner) == ("old \udcff bytes\n", "mine again", 0o640, "0:0")
    assert (file.before, file.expected) == (sha256(b"old \xff bytes\n"), sha256(b"mine again"))
    assert Path(file.backup).read_bytes() == b"old \xff bytes\n"


def test_a_new_file_remembers_the_directories_made_above_it(machine: Machine, tmp_path: Path) -> None:
    setup(machine, "r1", PutFile(str(tmp_path / "a" / "b" / "new"), "mine"))
    (file,) = read_past(machine).files
    assert (file.before, file.directories, file.old) == (ABSENT, 2, None)


@pytest.mark.parametrize(("others", "directories"), [(False, 2), (True, 0)], ids=["empty", "in use"])
def test_a_directory_without_the_file_is_gpunodes_while_it_is_empty(
    machine: Machine, tmp_path: Path, others: bool, directories: int
) -> None:
    path = tmp_path / "a" / "b" / "new"
    setup(machine, "r1", PutFile(str(path), "mine"))
    path.unlink()
    if others:
        (path.parent / "theirs").touch()
    assert read_past(machine).files[0].directories == directories


def test_others_who_wrote_between_two_runs_are_noticed(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    setup(machine, "r1", put(path, "mine"))
    path.write_text("mine and theirs")
    setup(machine, "r2", put(path, "mine and theirs, again"))
    (file,) = read_past(machine).files
    assert (file.old, file.expected) == ("old", None)


def test_from_one_run_on(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    setup(machine, "r1.1", put(path, "one"))
    setup(machine, "r2.1", put(path, "two"))
    past = read_past(machine, run="r2")
    assert (past.runs, past.files[0].old) == (("r2.1",), "one")


def test_a_step_that_failed_has_left_nothing_to_undo(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    assert setup(machine, "r1", put(path, "mine"), Run(("false",))) is StepStatus.FAILED
    past = read_past(machine)
    assert (past.files, past.engines) == ((), ())


@pytest.mark.parametrize("damage", [Path.unlink, lambda p: p.write_text("other")], ids=["gone", "overwritten"])
def test_a_backup_that_is_not_what_it_was_is_no_backup(machine: Machine, tmp_path: Path, damage: Any) -> None:
    path = config(tmp_path)
    setup(machine, "r1", put(path, "mine"))
    damage(Path(read_past(machine).files[0].backup))
    (file,) = read_past(machine).files
    assert file.old is None
    assert file.before == sha256(b"old")


def test_a_torn_line_is_counted_and_the_rest_is_read(machine: Machine, tmp_path: Path) -> None:
    setup(machine, "r1", put(config(tmp_path), "mine"))
    with (machine.state / "journal.jsonl").open("a") as file:
        file.write('{"kind": "file", "run": "r2", "pa')
    past = read_past(machine)
    assert (past.unread, names(past)) == (1, ["daemon.json"])


def test_a_journal_of_something_else_is_refused_with_the_way_to_the_backups(machine: Machine) -> None:
    machine.state.mkdir()
    (machine.state / "journal.jsonl").write_bytes(b"\x00\x01garbage\n")
    with pytest.raises(ConfigFileError, match="holds nothing that gpunode wrote") as refused:
        read_past(machine)
    assert "backup" in refused.value.remedy.text


def test_a_done_undo_leaves_nothing_and_a_later_setup_begins_anew(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    setup(machine, "r1", put(path, "mine"))
    undoing = Undoing(read_past(machine).runs)
    back = Plan("testhost", Spec(), "", steps=(Step("undo.x", "", "", (put(path, "old"),)),), undo=undoing)
    assert carry_out(machine, "u1", back) is StepStatus.DONE
    assert (read_past(machine).files, read_past(machine).runs, read_past(machine).last_undo) == ((), (), "u1")
    path.write_text("newer")
    setup(machine, "r2", put(path, "mine"))
    past = read_past(machine)
    assert (past.runs, past.files[0].old) == (("r2",), "newer")


def test_what_commands_did_is_known_with_how_it_was_before(machine: Machine, tmp_path: Path) -> None:
    key, unit = tmp_path / "gpunode-cuda.asc", "nvidia-persistenced.service"
    host = HostFacts(
        **{
            **HOST.__dict__,
            "packages": PackageFacts("apt", {"nvidia-open": PackageVersion("580.1-1")}, frozenset({"docker.io"})),
            "runtimes": (DOCKER.__class__(**{**DOCKER.__dict__, "effective_default": "crun"}),),
            "services": {unit: ServiceFacts("loaded", "inactive", enabled="disabled")},
        }
    )
    runs = (
        Run(("true", "nvidia-open", "dkms"), packages=("nvidia-open", "dkms")),
        Run(("touch", str(key)), files=(str(key),)),
        Run(("systemctl", "enable", "--now", unit), ok_codes=tuple(range(256))),
    )
    masks = Run(("systemctl", "mask", "nvidia-imex.service"), ok_codes=tuple(range(256)))
    setup(machine, "r1", *runs, masks, host=host)
    past = read_past(machine, packages=True)
    assert dict(past.packages) == {"nvidia-open": "580.1-1", "dkms": None}
    assert past.held == {"docker.io"}
    assert {"nvidia-open", "dkms"} <= past.words
    assert past.wrote == (str(key),)
    assert dict(past.services) == {unit: ("disabled", "inactive")}
    assert dict(past.masked) == {"nvidia-imex.service": ("", "inactive")}
    assert dict(past.defaults) == {"docker": "crun"}
    assert past.inventory.endswith("/backup/r1/packages")
    (machine.state / "backup/r1/packages").write_text("")
    assert read_past(machine, packages=True).inventory == "", "a power cut emptied it: not every package is gpunode's"


def test_a_removal_of_packages_that_was_interrupted_is_known_until_it_has_ended(machine: Machine) -> None:
    setup(machine, "r1", Run(("true",), packages=("dkms",)))
    step = Step("undo.packages", "title", "why", (Run(("true",)),), for_undo=ForUndo(erases=True))
    for run_id, interrupted in (("u1", True), ("u2", False)):
        carry_out(machine, run_id, Plan("testhost", Spec(), "", steps=(step,), undo=Undoing(("r1",), True)))
        lines = machine.journal.splitlines()
        cut = lines[: -2 if interrupted else -1]  # without the ends of the step and the run; of the run alone
        (machine.state / "journal.jsonl").write_text("\n".join(cut) + "\n")
        assert read_past(machine, packages=True).erasing is interrupted


@pytest.mark.parametrize("shell", SHELLS, ids=["dash", "bash", "busybox"])
@pytest.mark.parametrize(
    ("manager", "tool", "answers"),
    [
        ("apt", "dpkg-query", "ii dkms\nrc gone\nun never\nhi bash\nii bash\n"),
        ("dnf", "rpm", "dkms\nbash\nbash\n"),
        ("pacman", "pacman", "dkms\nbash\n"),
    ],
    ids=["apt", "dnf", "pacman"],
)
def test_the_inventory_lists_every_package_and_no_removed_one(
    shell: tuple[str, ...], manager: str, tool: str, answers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each manager is asked in its own way; a tool of another on the same host (Debian has an rpm) is not."""
    if (shell[0], tool) == ("busybox", "rpm"):
        pytest.skip("busybox runs an rpm of its own instead")
    machine = Machine(tmp_path, shell)
    for name in ("dpkg-query", "rpm", "pacman"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nprintf '{answers if name == tool else 'another'}'\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    host = replace(HOST, packages=PackageFacts(manager))
    assert setup(machine, "r1", Run(("true",), packages=("dkms",)), host=host) is StepStatus.DONE
    listed = (machine.state / "backup" / "r1" / "packages").read_text().splitlines()
    assert listed == ["bash", "dkms"]


def test_nothing_is_installed_where_the_packages_from_before_cannot_be_listed(machine: Machine, tmp_path: Path) -> None:
    host = replace(HOST, packages=PackageFacts("pacman"))  # and there is no pacman here
    made = tmp_path / "made"
    with pytest.raises(StepFailed, match=r"installed packages cannot be listed: .*pacman"):
        setup(machine, "r1", Run(("touch", str(made)), packages=("dkms",)), host=host)
    assert not made.exists()
    assert not (machine.state / "backup" / "r1" / "packages").exists()


def test_a_manager_that_answers_with_no_package_is_believed(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bin" / "pacman"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\necho \"warning: database file for 'extra' does not exist\" >&2\n[ $1 = -Dk ]\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    host = replace(HOST, packages=PackageFacts("pacman"))
    assert setup(machine, "r1", Run(("true",), packages=("dkms",)), host=host) is StepStatus.DONE
    assert (machine.state / "backup" / "r1" / "packages").read_text() == ""


def test_the_default_that_counts_is_the_last_one_that_was_not_gpunodes(machine: Machine, tmp_path: Path) -> None:
    lines = [
        {"kind": "run-begin", "run": f"r{n}", "before": {"default_runtimes": {"docker": default}, "handler": "nvidia"}}
        for n, default in enumerate(("runc", "crun", "nvidia", None))
    ]
    machine.state.mkdir()
    (machine.state / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert dict(read_past(machine).defaults) == {"docker": "crun"}


def cut_undo(machine: Machine, run_id: str, runs: Sequence[str], *actions: Action) -> None:
    """An undo that was killed right after these actions: its journal has neither the step's end nor its own."""
    step = Step("undo.docker.default", "title", "why", actions)
    carry_out(machine, run_id, Plan("testhost", Spec(), "", steps=(step,), undo=Undoing(tuple(runs))))
    lines = [line for line in machine.journal.splitlines() if run_id not in line or "-end" not in line]
    (machine.state / "journal.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("before", [None, "theirs"], ids=["absent before", "theirs before"])
def test_what_an_interrupted_undo_wrote_on_its_way_is_not_taken_for_somebodys_edit(
    machine: Machine, tmp_path: Path, before: str | None
) -> None:
    path = tmp_path / "daemon.json"
    if before is not None:
        path.write_text(before)
    setup(machine, "r1", put(path, "nvidia"))
    restored = RemoveFile(str(path)) if before is None else PutFile(str(path), before, any_before=True)
    cut_undo(machine, "u1", ["r1"], restored, PutFile(str(path), "runc", any_before=True))
    (file,) = read_past(machine).files
    assert rollback(file, lambda text: f"{text}, edited") == Back(file, before, edited=False)

    setup(machine, "r2", put(path, "nvidia again"))
    (file,) = read_past(machine).files
    assert rollback(file, lambda text: f"{text}, edited") == Back(file, before, edited=False)


def test_an_interrupted_undo_that_kept_somebodys_edit_keeps_it_again(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    setup(machine, "r1", put(path, "nvidia"))
    path.write_text("nvidia, edited")
    cut_undo(machine, "u1", ["r1"], put(path, "edited"), PutFile(str(path), "edited, runc", any_before=True))
    (file,) = read_past(machine).files
    assert rollback(file, lambda text: text) == Back(file, "edited", edited=True)
    path.write_text("edited once more")
    (file,) = read_past(machine).files
    assert rollback(file, lambda text: f"without: {text}") == Back(file, "without: edited once more", edited=True)
