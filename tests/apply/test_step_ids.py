"""A step's id is its name, for people and for finding it again; what a step is like stands in its fields."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import gpunode
from gpunode.apply.execute import execute
from gpunode.apply.journal.entries import Entry, parse_journal
from gpunode.apply.journal.for_undo import of_older
from gpunode.apply.journal.history import history
from gpunode.apply.journal.past import read_past
from gpunode.apply.journal.snapshot import before_values
from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import collect
from gpunode.model.action import PutFile
from gpunode.model.past import Past
from gpunode.model.plan import ForUndo, Plan, Step
from gpunode.model.report import StepStatus
from gpunode.model.spec import MigLayout, Spec
from gpunode.planner.plan import make_plan
from gpunode.planner.undo.plan import undo_plan
from gpunode.transport.recorded import Recorded
from tests.apply.machine import Machine
from tests.planner.builders import T4, host

SOURCE = Path(gpunode.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
AFFIXES = {"startswith", "endswith", "removeprefix", "removesuffix"}
OLD_JOURNALS = SOURCE / "apply/journal/for_undo.py"  # where the id is all that an older gpunode wrote


def calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Constant]:
    """The strings that are the first argument of these functions or methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in names and isinstance(node.args[0].value, str):
                yield node.args[0]


def keyed_on_ids(sources: dict[Path, str]) -> list[str]:
    """Where a step's id, or how one begins or ends, is said outside the step that bears it."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    naming = [constant for tree in trees.values() for constant in calls(tree, {"Step", "Kept"})]
    ids = {str(constant.value) for constant in naming if "." in str(constant.value)} | {"docker.default"}
    ends = {f"{i.split('.')[0]}." for i in ids} | {f".{i.rpartition('.')[2]}" for i in ids}
    found = []
    for path, tree in trees.items():
        affixes = [constant for constant in calls(tree, AFFIXES) if constant.value in ends]
        for node in ast.walk(tree):
            is_id = isinstance(node, ast.Constant) and node.value in ids and all(node is not one for one in naming)
            if is_id or any(node is one for one in affixes):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {node.value!r}")  # type: ignore[attr-defined]
    return found


def test_no_code_asks_what_a_step_is_called() -> None:
    sources = {path: path.read_text() for path in SOURCE.rglob("*.py") if path != OLD_JOURNALS}
    assert keyed_on_ids(sources) == []


@pytest.mark.parametrize(
    "code",
    [
        "any(step.id == 'driver.install' for step in steps)",
        "step.id.startswith('repo.')",
        "name.removesuffix('.default')",
        "CHANGES = ('driver.install',)",
    ],
)
def test_code_that_asks_is_found(code: str) -> None:
    steps = "Step('driver.install', 't', 'w', ())\nStep('repo.tools', 't', 'w', ())\n"
    assert len(keyed_on_ids({SOURCE / "x.py": steps + code})) == 1


def written(plan: Plan, tmp_path: Path) -> str:
    """The journal of a run that carried out these steps, each with one file in place of its actions."""
    machine = Machine(tmp_path)
    directory = tmp_path / "files"
    directory.mkdir()
    steps = tuple(replace(s, actions=(PutFile(str(directory / str(n)), "x"),)) for n, s in enumerate(plan.steps))
    results = execute(
        replace(plan, steps=steps), machine, run_id="r1", on_event=lambda _: None, stop=lambda: False,
        before=before_values(host(T4), plan), pause=lambda _: None,
    )  # fmt: skip
    assert {result.status for result in results} == {StepStatus.DONE}
    return machine.journal


def past(journal: str, tmp_path: Path) -> Past:
    machine = Machine(tmp_path)
    machine.state.mkdir(exist_ok=True)
    (machine.state / "journal.jsonl").write_text(journal)
    return read_past(machine)


def all_marked() -> Plan:
    """Every kind of step that undo knows something of."""
    marks = {
        "docker.default": ForUndo(engine="docker"),
        "containerd@containerd-gpu.default": ForUndo(engine="containerd@containerd-gpu"),
        "kernel.nouveau": ForUndo(initramfs=True),
        "repo.prerequisites": ForUndo(for_good="prerequisites"),
        "mig.layout": ForUndo(for_good="mig-layout"),
        "secureboot.enrol": ForUndo(for_good="signing-key"),
        "driver.load": ForUndo(),
    }
    return Plan(
        "testhost", Spec(), "", steps=tuple(Step(i, "t", "w", (), for_undo=known) for i, known in marks.items())
    )


def without_for_undo(journal: str) -> str:
    """As gpunode wrote it before steps said what undo goes by."""
    entries = [json.loads(line) for line in journal.splitlines()]
    return "".join(json.dumps({k: v for k, v in e.items() if k != "for_undo"}) + "\n" for e in entries)


def test_a_journal_of_an_older_gpunode_is_undone_the_same(tmp_path: Path) -> None:
    journal = written(all_marked(), tmp_path)
    now = past(journal, tmp_path)
    assert now.engines == ("docker", "containerd@containerd-gpu")
    assert sorted(now.for_good) == ["mig-layout", "prerequisites", "signing-key"]
    assert [file.step for file in now.files if file.for_undo.initramfs] == ["kernel.nouveau"]
    assert past(without_for_undo(journal), tmp_path) == now


def test_a_cut_off_undo_of_an_older_gpunode_is_known() -> None:
    entries: list[Entry] = [
        {"kind": "run-begin", "run": "u", "before": {"undo": {"runs": ["r1"]}}},
        {"kind": "step-begin", "run": "u", "step": "undo.docker.default"},
    ]
    assert [known.engine for known in history(entries).cut_off.values()] == ["docker"]


def test_undo_does_the_same_whatever_the_steps_were_called(tmp_path: Path) -> None:
    plan = all_marked()
    renamed = replace(plan, steps=tuple(replace(step, id=f"x{n}") for n, step in enumerate(plan.steps)))
    made = []
    for name, one in (("named", plan), ("renamed", renamed)):
        directory = tmp_path / name
        directory.mkdir()
        undo = undo_plan(host(T4), past(written(one, directory), directory), load_catalog())
        steps = [(step.title.replace(str(directory), ""), step.for_undo, len(step.actions)) for step in undo.steps]
        made.append((steps, [kept.text for kept in undo.kept], len(undo.undo.left if undo.undo else ())))
    assert made[0] == made[1]
    assert any("rebuild the initramfs" in title for title, _, _ in made[0][0])


def test_the_steps_of_a_setup_say_for_undo_what_an_older_gpunode_read_from_their_ids() -> None:
    seen = set()
    layout = (MigLayout.parse("all=1g.10gb:7"),)
    for slug, mig in (("alma8-p40", None), ("debian12-l4", None), ("ubuntu2404-mig-a100", layout)):
        facts = collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug))
        for step in make_plan(facts, Spec(mig=mig), load_catalog()).steps:
            assert step.for_undo == of_older(step.id), step.id
            seen.add(step.for_undo)
    assert {known.for_good for known in seen} == {None, "prerequisites", "mig-layout"}
    assert {known.engine for known in seen} == {"", "docker", "containerd"}
    assert {known.initramfs for known in seen} == {False, True}


def test_torn_words_in_the_journal_are_no_marks() -> None:
    entry = '{"kind": "step-begin", "run": "r", "step": "s", "for_undo": {"for_good": ["x"], "initramfs": 1}}'
    found = history(parse_journal('{"kind": "run-begin", "run": "r"}\n' + entry))
    assert found.runs["r"].steps == {"s": ForUndo()}
