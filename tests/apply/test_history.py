"""Which changes of the past still stand: roll-backs, undos, killed runs and other people in between."""

from __future__ import annotations

import pytest

from gpunode.apply.journal.entries import Entry, Written, open_steps, parse_journal
from gpunode.apply.journal.history import History, history, still_needed
from gpunode.errors import UsageError

CONF, KEYS = "/etc/docker/daemon.json", "/etc/apt/sources.list.d/gpunode-cuda.sources"


def begin(run: str, **before: object) -> Entry:
    return {"kind": "run-begin", "run": run, "before": before}


def wrote(run: str, before: str, after: str, path: str = CONF, step: str = "docker.default") -> Entry:
    backup = "" if before == "absent" else f"/backup/{run}{path}.{before}"
    return {"kind": "file", "run": run, "step": step, "path": path, "before": before, "after": after, "backup": backup}


def restored(run: str, path: str = CONF, step: str = "docker.default") -> Entry:
    return {"kind": "restore", "run": run, "step": step, "path": path}


def failed(run: str, step: str = "docker.default") -> Entry:
    return {"kind": "step-end", "run": run, "step": step, "status": "failed"}


def done(run: str, status: str = "done") -> Entry:
    return {"kind": "run-end", "run": run, "status": status}


def undo(run: str, *runs: str, packages: bool = False, pending: bool = False) -> Entry:
    return begin(run, undo={"runs": list(runs), "packages": packages, "pending": pending})


SETUP = [begin("r1"), wrote("r1", "a", "b")]


def standing(found: History, path: str = CONF) -> list[tuple[str, str]]:
    return [(c.run, f"{c.written.before} {c.written.after}") for c in found.changes.get(path, [])]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([begin("r1"), wrote("r1", "a", "b"), done("r1")], [("r1", "a b")]),
        ([begin("r1"), wrote("r1", "a", "b"), restored("r1")], []),
        ([begin("r1"), wrote("r1", "a", "n"), wrote("r1", "n", "a")], []),
        ([begin("r1"), wrote("r1", "a", "b"), begin("r2"), wrote("r2", "b", "c")], [("r1", "a b"), ("r2", "b c")]),
        ([begin("r1"), wrote("r1", "a", "b"), begin("r2"), wrote("r2", "a", "b")], [("r2", "a b")]),
        ([begin("r1"), wrote("r1", "a", "b"), begin("r2"), wrote("r2", "x", "c")], [("r1", "a b"), ("r2", "x c")]),
        ([begin("r1"), wrote("r1", "a", "b"), undo("u", "r1"), wrote("u", "b", "a"), done("u")], []),
        ([begin("r1"), wrote("r1", "a", "b"), undo("u", "r1"), wrote("u", "b", "a")], [("r1", "a b")]),
        (
            [*SETUP, undo("u", "r1"), wrote("u", "b", "a"), restored("u"), done("u", "failed")],
            [("r1", "a b")],
        ),
        (
            [*SETUP, undo("u", "r1"), wrote("u", "b", "a"), begin("r2"), wrote("r2", "a", "c")],
            [("r2", "a c")],
        ),
        ([*SETUP, undo("u", "r1"), done("u"), begin("r2"), wrote("r2", "x", "y")], [("r2", "x y")]),
        ([begin("r1"), {"kind": "file", "run": "r1", "path": CONF}], []),
        (
            [*SETUP, undo("u", "r1", pending=True), wrote("u", "b", "k"), wrote("u", "k", "n"), wrote("u", "n", "k")],
            [("r1", "a k")],
        ),
        ([*SETUP, undo("u", "r1", pending=True), wrote("u", "b", "a"), wrote("u", "a", "n"), done("u")], []),
        ([*SETUP, undo("u", "r1", pending=True), wrote("u", "x", "y"), done("u")], [("r1", "a b")]),
        ([*SETUP, begin("r2"), wrote("r2", "b", "a"), restored("r2")], [("r1", "a b")]),
        ([*SETUP, begin("r2"), wrote("r2", "b", "a"), failed("r2")], [("r1", "a b")]),
        ([*SETUP, begin("r2"), wrote("r2", "b", "c"), wrote("r2", "c", "a"), failed("r2")], [("r1", "a b")]),
        (
            [*SETUP, begin("r2"), wrote("r2", "b", "c"), wrote("r2", "c", "a"), restored("r2"), restored("r2")],
            [("r1", "a b")],
        ),
        ([*SETUP, begin("r2"), wrote("r2", "b", "a"), restored("r2"), failed("r2")], [("r1", "a b")]),
        ([*SETUP, begin("r2"), wrote("r2", "b", "a")], []),
    ],
    ids=[
        "a setup's write stands",
        "a roll-back takes it away",
        "a restore by two writes takes both away",
        "two setups stand both",
        "restored manually in between: only the second stands",
        "edited in between: both stand",
        "an undo that is done leaves nothing",
        "an undo that was killed changes nothing yet",
        "an undo that failed changes nothing",
        "a setup after a killed undo begins where that put the file",
        "an undo that left the file still ends the first setup's claim on it",
        "an entry that was never finished counts for nothing",
        "an undo that waits for containers leaves its own text, which is gpunode's",
        "what such an undo restores is restored",
        "what others wrote before such an undo is theirs",
        "what led back and was refused, restored, leaves the change before it",
        "likewise where only the step says that it failed",
        "likewise after two writes in one step",
        "likewise where both were restored",
        "likewise where the journal has both words",
        "what led back and was cut off has led back",
    ],
)  # fmt: skip
def test_what_still_stands(entries: list[Entry], expected: list[tuple[str, str]]) -> None:
    assert standing(history(entries)) == expected


def test_repositories_stand_until_the_packages_are_undone_too() -> None:
    setup = [begin("r1"), wrote("r1", "a", "b"), wrote("r1", "absent", "s", KEYS, "repo.cuda"), done("r1")]
    first = [undo("u1", "r1"), done("u1")]
    assert standing(history([*setup, *first]), KEYS) == [("r1", "absent s")]
    assert [r.id for r in history([*setup, *first]).since(None)] == ["r1"]
    second = [undo("u2", "r1", packages=True), done("u2")]
    assert standing(history([*setup, *first, *second]), KEYS) == []
    assert history([*setup, *first, *second]).since(None) == []


def test_an_undo_that_waits_leaves_its_runs_for_a_later_one() -> None:
    first = [undo("u1", "r1", packages=True, pending=True), wrote("u1", "b", "k"), done("u1")]
    assert [r.id for r in history([*SETUP, *first]).since(None)] == ["r1"]
    assert f"/backup/r1{CONF}.a" in still_needed([*SETUP, *first])
    second = [undo("u2", "r1", packages=True), wrote("u2", "k", "a"), done("u2")]
    assert history([*SETUP, *first, *second]).since(None) == []
    assert still_needed([*SETUP, *first, *second]) == frozenset()


def test_a_run_is_named_with_or_without_its_pass_and_takes_the_later_ones_along() -> None:
    found = history([begin("r1.1"), begin("r1.2"), begin("r2.1"), undo("u.1"), begin("r3.1")])
    assert [r.id for r in found.since("r2")] == ["r2.1", "r3.1"]
    assert [r.id for r in found.since("r1.2")] == ["r1.2", "r2.1", "r3.1"]
    with pytest.raises(UsageError, match="'r9' is not a run") as refused:
        found.since("r9")
    assert refused.value.evidence == "its runs are r1, r2, r3"


def test_backups_are_needed_until_what_they_belong_to_is_undone() -> None:
    setup = [begin("r1"), wrote("r1", "a", "b"), begin("r2"), wrote("r2", "b", "c")]
    kept = still_needed(setup)
    assert {f"/backup/r1{CONF}.a", f"/backup/r2{CONF}.b"} <= kept
    assert {path.rsplit("/", 1)[0] for path in kept if path.endswith("/packages")} == {
        "/var/lib/gpunode/backup/r1",
        "/var/lib/gpunode/backup/r2",
    }
    assert still_needed([*setup, undo("u", "r1", "r2", packages=True), done("u")]) == frozenset()


@pytest.mark.parametrize(
    ("after", "cut_off"),
    [
        ([], {"undo.x"}),
        ([{"kind": "step-end", "run": "u", "step": "undo.x", "status": "done"}], set()),
        ([undo("u2", "r1"), {"kind": "step-end", "run": "u", "step": "undo.x", "status": "superseded"}], set()),
    ],
    ids=["killed", "done", "closed by the next one"],
)
def test_a_step_of_an_undo_that_never_ended_is_known(after: list[Entry], cut_off: set[str]) -> None:
    entries = [*SETUP, undo("u", "r1"), {"kind": "step-begin", "run": "u", "step": "undo.x"}, *after]
    assert set(history(entries).cut_off) == cut_off


def test_a_journal_that_a_host_has_already_is_read_under_its_earlier_names() -> None:
    """The names changed on 2026-11-22: a user's file must come back as that user's."""
    line = '{"kind": "file", "run": "r1", "step": "s", "path": "/x", "after": "absent", "before": "absent", '
    (entry,) = parse_journal(line + '"folders": 2, "hands": "1000:1000"}\n')
    assert entry == {**entry, "directories": 2, "run_as": "1000:1000"}
    assert (Written.from_entry(entry).directories, Written.from_entry(entry).run_as) == (2, "1000:1000")


@pytest.mark.parametrize("spoilt", [{"mode": "rw"}, {"before": None}, {"uid": -1}, {"directories": "x"}])
def test_a_damaged_line_of_a_step_that_is_open_leaves_the_others(spoilt: dict[str, object]) -> None:
    step = {"kind": "step-begin", "run": "r1", "step": "docker.default"}
    damaged = {name: value for name, value in {**wrote("r1", "a", "b"), **spoilt}.items() if value is not None}
    other = wrote("r1", "a", "b", path=KEYS)
    assert open_steps([step, damaged, other]) == {("r1", "docker.default"): (Written.from_entry(other),)}


@pytest.mark.parametrize("runs", [5, "r1", None, {"r1": 1}])
def test_an_undo_that_does_not_say_of_which_runs_undoes_none(runs: object) -> None:
    entries = [*SETUP, begin("u", undo={"runs": runs, "packages": False}), done("u")]
    assert not history(entries).runs["r1"].config_undone
    assert standing(history(entries)) == [("r1", "a b")]
