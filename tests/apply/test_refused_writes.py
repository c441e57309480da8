"""Writes and rollbacks that come to nothing, or only half: what stands on the disk is what a later undo goes by."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.journal.past import read_past
from gpunode.catalog.load import load_catalog
from gpunode.model.action import Action, PutFile, RemoveFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.report import StepResult, StepStatus
from gpunode.model.spec import Spec
from gpunode.planner.undo.plan import undo_plan
from gpunode.transport.base import Completed
from tests.apply.machine import Machine
from tests.apply.test_undo import HOST, SHELLS, carry_out, put, setup

STEP = "toolkit.config"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "x.conf"
    path.parent.mkdir()
    path.write_text("old\n")
    return path


def one(machine: Machine, *actions: Action, notes: list[str] | None = None) -> StepResult:
    plan = Plan("testhost", Spec(), "", steps=(Step(STEP, "title", "why", actions),))
    said = notes if notes is not None else []
    (result,) = execute(
        plan, machine, run_id="r1.1", on_event=lambda event: said.append(event.text), stop=lambda: False, before={},
        pause=lambda _: None,
    )  # fmt: skip
    return result


def undo(machine: Machine) -> StepStatus | None:
    """As `gpunode undo`; None: it has nothing to do."""
    plan = undo_plan(HOST, read_past(machine), load_catalog())
    return carry_out(machine, "u1.1", plan) if plan.steps else None


def test_what_a_person_mended_after_a_refusal_is_what_an_undo_brings_back(machine: Machine, path: Path) -> None:
    """The refused text was announced in the journal, and was never in the file."""
    refused = PutFile(str(path), "gpunode's\n", expect_sha256=put(path, "").expect_sha256, validate=Run(("false",)))
    assert setup(machine, "r1.1", refused, step=STEP) is StepStatus.FAILED
    path.write_text("mended\n")
    assert undo(machine) is None
    assert setup(machine, "r2.1", put(path, "mended\n# gpunode\n"), step=STEP) is StepStatus.DONE
    assert undo(machine) is StepStatus.DONE
    assert path.read_text() == "mended\n"


def test_what_another_program_writes_while_the_text_is_validated_stays(machine: Machine, path: Path) -> None:
    meanwhile = Run(("sh", "-c", f"echo theirs >{path}"))
    action = PutFile(str(path), "gpunode's\n", expect_sha256=put(path, "").expect_sha256, validate=meanwhile)
    assert setup(machine, "r1.1", action, step=STEP) is StepStatus.FAILED
    assert path.read_text() == "theirs\n"
    assert undo(machine) is None
    assert path.read_text() == "theirs\n"


def test_a_journal_of_before_that_rule_is_read_by_it() -> None:
    from gpunode.apply.journal.history import history

    file = {"kind": "file", "run": "r1", "step": STEP, "path": "/x", "before": "a", "after": "b"}
    begin = {"kind": "run-begin", "run": "r1", "before": {}}
    for status, stands in (("failed", 0), ("rollback-failed", 1), ("done", 1)):
        ended = {"kind": "step-end", "run": "r1", "step": STEP, "status": status}
        found = history([begin, {"kind": "step-begin", "run": "r1", "step": STEP}, file, ended])
        assert sum(map(len, found.changes.values())) == stands


@dataclass
class Struck(Machine):
    """Its scripts that write begin with these words."""

    first: str = ""

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        writes = "want=$6" in script and "validate" not in self.first
        return super().run(self.first + script if writes else script, stdin=stdin, timeout_s=timeout_s)


ENDS = {
    "its directory cannot be flushed": 'sync() { case $1 in */etc) echo "sync: error syncing: No space left on device" '
    '>&2; return 1 ;; esac; command sync "$@"; }\n',
    "it is terminated": 'mv() { command mv "$@" || return; case $3 in */x.conf) kill -TERM $$; '
    "kill -TERM $(sh -c 'echo $PPID') ;; esac; }\n",
    "it is killed for memory": 'mv() { command mv "$@" || return; case $3 in */x.conf) kill -KILL '
    "$(sh -c 'echo $PPID') ;; esac; }\n",
}


@pytest.mark.parametrize("first", ENDS.values(), ids=ENDS)
def test_a_write_that_ends_after_the_rename_is_rolled_back(first: str, tmp_path: Path, path: Path) -> None:
    machine = Struck(tmp_path, first=first)
    assert one(machine, put(path, "new\n")).status is StepStatus.FAILED
    assert path.read_text() == "old\n"
    assert undo(machine) is None


def test_a_rollback_that_is_cut_off_is_an_undos_to_do(machine: Machine, path: Path) -> None:
    """The power went before the old bytes were back."""
    assert setup(machine, "r1.1", put(path, "new\n"), step=STEP) is StepStatus.DONE
    journal = machine.state / "journal.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("".join(f"{line}\n" for line in lines if '"step-end"' not in line and '"run-end"' not in line))
    assert undo(machine) is StepStatus.DONE
    assert path.read_text() == "old\n"


def test_what_could_not_be_restored_is_an_undos_to_do(machine: Machine, path: Path) -> None:
    blocked = Run(("sh", "-c", f"mkdir {path.parent}/.x.conf.gpunode; exit 1"))
    assert one(machine, put(path, "new\n"), blocked).status is StepStatus.ROLLBACK_FAILED
    assert path.read_text() == "new\n"
    shutil.rmtree(path.parent / ".x.conf.gpunode")
    assert undo(machine) is StepStatus.DONE
    assert path.read_text() == "old\n"


def test_a_full_disk_below_var_keeps_no_old_bytes_from_etc(machine: Machine, path: Path) -> None:
    full = Run(("sh", "-c", f"ln -sf /dev/full {machine.state}/journal.jsonl; exit 1"))
    assert one(machine, put(path, "new\n"), full).status is StepStatus.FAILED
    assert path.read_text() == "old\n"


def test_of_what_others_wrote_before_a_rollback_a_copy_is_kept(machine: Machine, path: Path) -> None:
    notes: list[str] = []
    theirs = Run(("sh", "-c", f"echo theirs >{path}; exit 1"))
    assert one(machine, put(path, "new\n"), theirs, notes=notes).status is StepStatus.FAILED
    assert path.read_text() == "old\n"
    (copy,) = [note.rpartition(" ")[2] for note in notes if "is kept in" in note]
    assert Path(copy).read_text() == "theirs\n"
    assert Path(copy).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("action", ["remove", "write"])
@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_who_switched_a_file_off_with_a_link_keeps_it(action: str, shell: Sequence[str], tmp_path: Path) -> None:
    """`ln -s /dev/null`: the link stays, and the device above all. Here it is a pipe, which nobody may wait for."""
    device, link = tmp_path / "null", tmp_path / "71-x.rules"
    os.mkfifo(device)
    link.symlink_to(device)
    machine = Machine(tmp_path, tuple(shell))
    wanted = RemoveFile(str(link)) if action == "remove" else PutFile(str(link), "x\n", any_before=True)
    result = one(machine, wanted, Run(("false",)))
    assert (result.status, "is no regular file" in result.error) == (StepStatus.FAILED, True)
    assert link.is_symlink()
    assert device.is_fifo()


def test_a_rollback_removes_nothing_through_a_link(machine: Machine, tmp_path: Path, path: Path) -> None:
    """The file was absent before, and somebody made a link of it meanwhile."""
    ours = tmp_path / "71-x.rules"
    result = one(machine, put(ours, "x\n"), Run(("sh", "-c", f"ln -sf {path} {ours}; exit 1")))
    assert (result.status, "symbolic link" in result.error) == (StepStatus.ROLLBACK_FAILED, True)
    assert (ours.is_symlink(), path.read_text()) == (True, "old\n")


def test_what_a_link_leads_to_is_not_removed(machine: Machine, tmp_path: Path, path: Path) -> None:
    link = tmp_path / "71-x.rules"
    link.symlink_to(path)
    result = one(machine, RemoveFile(str(link)))
    assert (result.status, "remove it manually" in result.error) == (StepStatus.FAILED, True)
    assert (link.is_symlink(), path.read_text()) == (True, "old\n")


@pytest.mark.parametrize(
    "tail", [b'{"kind": "ru', b'{"kind": "ru\0\0\0', b"\0\0\0"], ids=["torn", "zeroes", "only those"]
)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_a_run_after_a_power_cut_is_undone(tail: bytes, shell: Sequence[str], tmp_path: Path, path: Path) -> None:
    machine = Machine(tmp_path, tuple(shell))
    machine.state.mkdir()
    (machine.state / "journal.jsonl").write_bytes(tail)
    assert setup(machine, "r1.1", put(path, "new\n"), step=STEP) is StepStatus.DONE
    assert undo(machine) is StepStatus.DONE
    assert path.read_text() == "old\n"


def test_a_journal_longer_than_an_answer_is_read(machine: Machine, path: Path) -> None:
    assert setup(machine, "r1.1", put(path, "new\n"), step=STEP) is StepStatus.DONE
    journal = machine.state / "journal.jsonl"
    own = journal.read_text()
    journal.write_text('{"kind": "command", "run": "r0", "argv": ["%s"]}\n' % ("x" * 1000) * 6000 + own)
    answers = []

    class Short(Machine):
        def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
            done = super().run(script, stdin=stdin, timeout_s=timeout_s)
            answers.append(len(done.stdout))
            return done

    assert undo(Short(machine.root)) is StepStatus.DONE
    assert max(answers) < 4 << 20
    assert path.read_text() == "old\n"
