"""When the resolver refuses, nothing that was added for it is left: no repository, no key, no switched-off list."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import sha256
from gpunode.apply.journal.entries import open_steps, parse_journal
from gpunode.apply.journal.history import history
from gpunode.catalog.load import load_catalog
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.files import FileFacts
from gpunode.model.plan import Plan, Product, Step
from gpunode.model.report import Event, EventKind, RunReport, StepResult, StepStatus
from gpunode.model.spec import DriverSource, Spec
from gpunode.planner.plan import make_plan
from gpunode.render.run_text import run_text
from tests.apply.machine import Machine
from tests.planner.builders import T4, host, packages

CATALOG = load_catalog()
DONE, FAILED, BACK, SKIPPED = StepStatus.DONE, StepStatus.FAILED, StepStatus.UNDONE, StepStatus.SKIPPED
REFUSES = Run(("sh", "-c", "echo 'E: Unable to correct problems' >&2; exit 100"))


def step(id: str, *actions: Action, serves: tuple[Product, ...] = (), undo: tuple[Action, ...] = ()) -> Step:
    return Step(id, f"title of {id}", "because", actions, undo, serves=serves)


def install(product: Product, *actions: Action, undo: tuple[Action, ...] = ()) -> Step:
    return Step(f"{product}.install", f"install {product}", "because", actions, undo, installs=product)


def carry_out(machine: Machine, *steps: Step, events: list[Event] | None = None) -> tuple[StepResult, ...]:
    heard: list[Event] = [] if events is None else events
    plan = Plan("testhost", Spec(), "", steps=steps)
    return execute(plan, machine, run_id="r1", on_event=heard.append, stop=lambda: False, pause=lambda _: None)


def statuses(results: tuple[StepResult, ...]) -> list[StepStatus]:
    return [result.status for result in results]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def repository(directory: Path, name: str, *serves: Product) -> Step:
    """A key that a command writes, and a list: as repo.cuda is made of."""
    key, listed = directory / f"{name}.asc", directory / f"{name}.sources"
    made = (Run(("sh", "-c", f"echo key >{key}"), files=(str(key),)), PutFile(str(listed), "Types: deb\n"))
    return step(f"repo.{name}", *made, serves=serves, undo=(Run(("rm", "-f", str(key))),))


def test_a_refused_install_takes_its_repository_key_and_lists_along(machine: Machine, tmp_path: Path) -> None:
    directory, old = tmp_path / "etc", tmp_path / "old.list"
    directory.mkdir()
    old.write_text("deb [trusted=yes] x /\n")
    lists = PutFile(str(old), "# off\n", expect_sha256=sha256(old.read_bytes()))
    events: list[Event] = []
    results = carry_out(
        machine,
        step("repo.lists", lists, serves=("driver",)),
        repository(directory, "cuda", "driver"),
        step("kernel.headers", Run(("true",))),
        install("driver", REFUSES),
        install("toolkit", Run(("true",))),
        events=events,
    )
    assert statuses(results) == [BACK, BACK, DONE, FAILED, SKIPPED]
    assert list(directory.iterdir()) == []
    assert old.read_text() == "deb [trusted=yes] x /\n"
    told = [(e.step, e.status) for e in events if e.kind is EventKind.STEP_END]
    assert told[-2:] == [("repo.cuda", BACK), ("repo.lists", BACK)]
    entries = parse_journal(machine.journal)
    assert open_steps(entries) == {}
    past = history(entries)
    assert [c for stack in past.changes.values() for c in stack] == [], "nothing is left for gpunode undo"
    assert not any(c.get("files") for c in past.runs["r1"].done_commands)


def test_a_step_between_that_fails_takes_the_repository_back_too(machine: Machine, tmp_path: Path) -> None:
    directory = tmp_path / "etc"
    directory.mkdir()
    steps = (repository(directory, "cuda", "driver"), step("kernel.headers", REFUSES), install("driver"))
    assert statuses(carry_out(machine, *steps)) == [BACK, FAILED, SKIPPED]
    assert list(directory.iterdir()) == []


def test_a_repository_stays_with_what_was_installed_from_it(machine: Machine, tmp_path: Path) -> None:
    directory = tmp_path / "etc"
    directory.mkdir()
    results = carry_out(
        machine,
        repository(directory, "local", "driver", "toolkit"),
        install("driver", Run(("true",))),
        repository(directory, "toolkit", "toolkit"),
        install("toolkit", REFUSES),
    )
    assert statuses(results) == [DONE, DONE, BACK, FAILED]
    assert sorted(path.name for path in directory.iterdir()) == ["local.asc", "local.sources"]


def test_a_repository_stays_while_packages_may_be_half_there(machine: Machine, tmp_path: Path) -> None:
    directory = tmp_path / "etc"
    directory.mkdir()
    broken = install("driver", Run(("true",)), REFUSES, undo=(Run(("false",)),))
    results = carry_out(machine, repository(directory, "cuda", "driver"), broken)
    assert statuses(results) == [DONE, StepStatus.ROLLBACK_FAILED]
    assert len(list(directory.iterdir())) == 2


def test_a_rollback_that_fails_is_reported(machine: Machine, tmp_path: Path) -> None:
    stuck = step("repo.cuda", Run(("true",)), serves=("driver",), undo=(Run(("false",)),))
    results = carry_out(machine, stuck, install("driver", REFUSES))
    assert results[0].status is StepStatus.ROLLBACK_FAILED
    assert "the rollback failed" in results[0].error
    assert results[0].remedy


def test_the_report_names_what_was_rolled_back() -> None:
    results = (StepResult("repo.cuda", BACK, error="rolled back: driver.install was not done"),)
    assert "undone    repo.cuda   rolled back: driver.install was not done" in run_text(
        RunReport("gpu07", steps=results)
    )


@pytest.mark.parametrize(
    ("spec", "served"),
    [
        (Spec(), {"repo.cuda": ["driver.install"], "repo.toolkit": ["toolkit.install"]}),
        (Spec(cuda="13.0"), {"repo.cuda": ["driver.install", "cuda.install"], "repo.toolkit": ["toolkit.install"]}),
        (
            Spec(driver_source=DriverSource.LOCAL, mirror="file:///srv/nvidia", trust_keys=("A" * 40,)),
            {"repo.local": ["driver.install", "toolkit.install"]},
        ),
    ],
    ids=["the two repositories", "CUDA's too", "one for all"],
)
def test_the_plan_ties_each_repository_to_its_installs(spec: Spec, served: dict[str, list[str]]) -> None:
    plan = make_plan(host(T4), spec, CATALOG)
    found = {s.id: [other.id for other in plan.steps if other.installs in s.serves] for s in plan.steps if s.serves}
    assert found == served


def test_a_key_that_was_there_before_is_no_rollbacks_affair() -> None:
    key = "/etc/apt/keyrings/gpunode-cuda.asc"
    fresh = make_plan(host(T4), Spec(), CATALOG)
    there = make_plan(host(T4, packages=packages({}, keys={key: "0" * 64})), Spec(), CATALOG)
    undo = {
        name: next(s.undo for s in plan.steps if s.id == "repo.cuda") for name, plan in (("n", fresh), ("o", there))
    }
    assert [a.argv for a in undo["n"] if isinstance(a, Run)] == [("rm", "-f", "--", key)]
    assert undo["o"] == ()


def test_wrong_lists_come_back_with_the_rest() -> None:
    wrong = FileFacts("/etc/apt/sources.list.d/n.list", "deb [trusted=yes] https://nvidia.github.io/"
                      "libnvidia-container/stable/deb/$(ARCH) /\n", "1" * 64)  # fmt: skip
    plan = make_plan(host(T4, packages=packages({}, sources=(wrong,))), Spec(), CATALOG)
    lists = next(s for s in plan.steps if s.id == "repo.lists")
    assert lists.serves == ("driver", "cuda", "toolkit")
