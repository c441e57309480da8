from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import sha256
from gpunode.apply.journal.entries import open_steps, parse_journal
from gpunode.errors import Drift, TransportError
from gpunode.fleet.run_log import now
from gpunode.model.action import Action, PutFile, RemoveFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.report import Event, EventKind, StepResult, StepStatus
from gpunode.model.spec import Spec
from gpunode.render.machine import event_json
from tests.apply.machine import Machine
from tests.render.published import wrong

DONE, FAILED, SKIPPED = StepStatus.DONE, StepStatus.FAILED, StepStatus.SKIPPED


def step(id: str, *actions: Action, undo: tuple[Action, ...] = ()) -> Step:
    return Step(id, f"title of {id}", "because", actions, undo)


def run(
    machine: Machine,
    *steps: Step,
    stop: Callable[[], bool] = lambda: False,
    events: list[Event] | None = None,
    run_id: str = "r1",
) -> tuple[StepResult, ...]:
    heard: list[Event] = [] if events is None else events
    plan = Plan("testhost", Spec(), "", steps=steps)
    return execute(
        plan, machine, run_id=run_id, on_event=heard.append, stop=stop, pause=lambda _: None, clock=lambda: 0.0
    )


def rewrite(path: Path, text: str) -> PutFile:
    return PutFile(str(path), text, expect_sha256=sha256(path.read_bytes()) if path.exists() else None)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("broken", range(6))
def test_whichever_action_fails_the_steps_files_are_as_before(machine: Machine, tmp_path: Path, broken: int) -> None:
    kept, gone, new = tmp_path / "kept", tmp_path / "gone", tmp_path / "made" / "new"
    kept.write_text("old kept")
    kept.chmod(0o640)
    gone.write_text("old gone")
    actions: list[Action] = [
        rewrite(kept, "one"),
        PutFile(str(kept), "two", expect_sha256=sha256(b"one")),
        RemoveFile(str(gone), sha256(b"old gone")),
        PutFile(str(new), "text"),
        Run(("true",)),
    ]
    actions.insert(broken, Run(("sh", "-c", "echo it is broken >&2; exit 3")))
    mark = tmp_path / "undone"
    undo = Run(("sh", "-c", f"cat {kept} > {mark}"))
    first, failed, last = run(machine, step("a"), step("b", *actions, undo=(undo,)), step("c", Run(("true",))))
    assert (first.status, failed.status, last.status) == (DONE, FAILED, SKIPPED)
    assert "it is broken" in failed.error
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("old kept", 0o640)
    assert gone.read_text() == "old gone"
    assert not new.parent.exists()
    assert mark.read_text() == "old kept", "undo runs after the files are back"
    ends = [e for e in parse_journal(machine.journal) if e["kind"] == "step-end"]
    assert [(e["step"], e["status"]) for e in ends] == [("a", "done"), ("b", "failed")]
    assert "it is broken" in ends[-1]["error"]
    assert open_steps(parse_journal(machine.journal)) == {}


def test_nothing_is_undone_when_nothing_was_changed(machine: Machine, tmp_path: Path) -> None:
    mark = tmp_path / "undone"
    refused = PutFile(str(tmp_path / "x"), "t", validate=Run(("false",)))
    (result,) = run(machine, step("a", refused, undo=(Run(("touch", str(mark))),)))
    assert result.status is FAILED
    assert not mark.exists()


def test_a_changed_file_of_a_later_step_stops_the_first_step(machine: Machine, tmp_path: Path) -> None:
    mark, path = tmp_path / "mark", tmp_path / "daemon.json"
    path.write_text("edited by someone")
    with pytest.raises(Drift):
        run(machine, step("a", Run(("touch", str(mark)))), step("b", PutFile(str(path), "n", expect_sha256="0" * 64)))
    assert not mark.exists()
    assert not machine.state.exists()


def test_a_rollback_that_fails_names_both_paths(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text("old")
    lose = Run(("sh", "-c", f"rm -r {machine.state}/backup; exit 1"))
    (result,) = run(machine, step("a", rewrite(path, "new"), lose))
    assert result.status is StepStatus.ROLLBACK_FAILED
    assert str(path) in result.error
    assert f"{machine.state}/backup/r1/" in result.error
    assert "restore the files named here manually" in result.remedy.text


def test_an_undo_that_fails_is_a_failed_rollback(machine: Machine) -> None:
    (result,) = run(machine, step("a", Run(("false",)), undo=(Run(("sh", "-c", "echo still dead; exit 1")),)))
    assert result.status is StepStatus.ROLLBACK_FAILED
    assert "still dead" in result.error
    assert "files" not in result.remedy.text  # all of them are as they were
    assert "run manually the command that failed in the rollback" in result.remedy.text


def test_a_file_system_that_became_read_only_is_named_with_what_to_do(machine: Machine) -> None:
    says = Run(("sh", "-c", "echo \"dpkg: error: cannot create '/etc/foo.conf': Read-only file system\"; exit 100"))
    (failed,) = run(machine, step("a", says))
    (stuck,) = run(machine, step("b", says, undo=(says,)))
    assert (failed.status, stuck.status) == (FAILED, StepStatus.ROLLBACK_FAILED)
    for result in (failed, stuck):
        assert "Read-only file system" in result.error
        assert "mount the file system of /etc/foo.conf read-write" in result.remedy.text


def test_stop_skips_what_has_not_begun(machine: Machine) -> None:
    answers = iter([False, True])
    results = run(machine, *(step(n, Run(("true",))) for n in "abc"), stop=lambda: next(answers))
    assert [r.status for r in results] == [DONE, SKIPPED, SKIPPED]
    assert parse_journal(machine.journal)[-1]["status"] == "stopped"


def test_a_killed_runs_open_step_is_put_back_when_it_fails_again(tmp_path: Path) -> None:
    """The first controller dies after the file was written and before the daemon was asked."""

    class Killed(Machine):
        def run(self, script: str, *, stdin: bytes = b"", timeout_s: float):  # type: ignore[no-untyped-def]
            if "never-reached" in script:
                raise KeyboardInterrupt
            return super().run(script, stdin=stdin, timeout_s=timeout_s)

    path = tmp_path / "daemon.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        run(Killed(tmp_path), step("docker", rewrite(path, "new"), Run(("never-reached",))))
    assert path.read_text() == "new"
    machine = Machine(tmp_path)
    (result,) = run(machine, step("docker", Run(("false",))), run_id="r2")
    assert result.status is FAILED
    assert path.read_text() == "old"
    assert open_steps(parse_journal(machine.journal)) == {}


def test_the_environment_reaches_the_command_and_no_argument_list(machine: Machine) -> None:
    secret = "http://user:hunter2@proxy"
    said = Run(
        ("sh", "-c", 'read -r line; echo "$line $https_proxy" | rev'), env=(("https_proxy", secret),), stdin="in\n"
    )
    (result,) = run(machine, step("a", said))
    assert result.commands[0].output == f"in {secret}"[::-1]
    assert not any("hunter2" in script for script in machine.scripts)
    assert "hunter2" not in machine.journal


def test_a_retry_waits_and_tries_again(machine: Machine, tmp_path: Path) -> None:
    second = Run(("sh", "-c", f"[ -e {tmp_path}/x ] || {{ touch {tmp_path}/x; exit 1; }}"), retry=(1.0, 1.0))
    (result,) = run(machine, step("a", second))
    assert [c.code for c in result.commands] == [1, 0]


def test_recorded_output_is_kept_on_the_host(machine: Machine) -> None:
    """Which versions were found after an install can be read there a year later."""
    run(
        machine,
        step(
            "a", Run(("echo", "595.91.07: libcuda1"), record_output=True, description="check"), Run(("echo", "chatter"))
        ),
    )
    (answer,) = (e for e in parse_journal(machine.journal) if e["kind"] == "answer")
    assert (answer["step"], answer["description"], answer["text"]) == ("a", "check", "595.91.07: libcuda1")


def test_a_command_over_its_limit_is_ended_and_said_so(machine: Machine) -> None:
    (result,) = run(machine, step("a", Run(("sleep", "30"), timeout_s=1)))
    assert "did not end within 1 s" in result.error


def test_a_missing_tool_is_named(machine: Machine) -> None:
    (result,) = run(machine, step("a", Run(("no-such-tool",))))
    assert "no-such-tool: not found on this host" in result.error


def test_apt_names_the_lock_holder_in_the_error(machine: Machine) -> None:
    apt = (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 243 (python3)\n"
        "N: Be aware that removing the lock file is not a solution and may break your system.\n"
    )
    (result,) = run(machine, step("a", Run(("sh", "-c", "cat; exit 100"), stdin=apt)))
    assert "held by process 243 (python3)" in result.error


def test_a_detached_command_runs_to_its_end_over_a_lost_connection(tmp_path: Path) -> None:
    class Flaky(Machine):
        def run(self, script: str, *, stdin: bytes = b"", timeout_s: float):  # type: ignore[no-untyped-def]
            done = super().run(script, stdin=stdin, timeout_s=timeout_s)
            if len(self.scripts) in (2, 4):  # the answer to `start`, and one poll, get lost
                raise TransportError("broken pipe")
            return done

    machine, mark = Flaky(tmp_path), tmp_path / "mark"
    slow = f'read -r line; echo "$line $COLOUR"; sleep 1; echo once >> {mark}; exit 100'
    install = Run(("sh", "-c", slow), ok_codes=(100,), env=(("COLOUR", "red"),), stdin="text\n", detach=True)
    (result,) = run(machine, step("driver", install))
    assert result.status is DONE, result.error
    assert result.commands[0].output == "text red"
    assert mark.read_text() == "once\n"
    assert machine.reconnects == 2


def test_events_tell_every_begin_and_end(machine: Machine) -> None:
    events: list[Event] = []
    run(machine, step("a", Run(("true",))), events=events)
    assert [(e.kind, e.step) for e in events] == [(EventKind.STEP_BEGIN, "a"), (EventKind.STEP_END, "a")]


def test_the_events_of_a_run_are_as_published(machine: Machine) -> None:
    events = [Event(EventKind.PHASE, "testhost", "apply pass 1"), Event(EventKind.NOTE, "testhost", "a")]
    run(machine, *(step(word, Run((word,))) for word in ("true", "false", "echo")), events=events)
    assert {event.kind for event in events} == set(EventKind)
    assert {event.status for event in events} >= {None, StepStatus.DONE, StepStatus.FAILED}
    assert [fault for event in events for fault in wrong(event_json(event, at=now()), "event")] == []


def test_the_journal_is_roots_alone_and_closes_a_torn_line(machine: Machine) -> None:
    machine.state.mkdir()
    (machine.state / "journal.jsonl").write_text('{"kind": "run-be')
    run(machine, step("a", Run(("true",))))
    lines = machine.journal.splitlines()
    assert lines[0] == '{"kind": "run-be'
    assert json.loads(lines[1])["kind"] == "run-begin"


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (65, "take another kernel; then run gpunode setup again"),
        (100, "fix what it names, then run gpunode setup again"),
    ],
    ids=["the code that it was written for", "any other code"],
)
def test_a_commands_own_remedy_is_for_its_exit_code_alone(machine: Machine, code: int, remedy: str) -> None:
    refused = Run(("sh", "-c", f"exit {code}"), remedies=((65, "take another kernel"),))
    (result,) = run(machine, step("a", refused))
    assert result.remedy.text == remedy
