"""Kernel headers that no repository has: what real plans added before that is rolled back, as no driver came."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.model.action import Run
from gpunode.model.plan import Plan, Step
from gpunode.model.report import StepStatus
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from tests.apply.machine import Machine

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "hosts"
HOSTS = ["oracle9-uek-a100", "rhel9-64k-gh200", "proxmox8-l4", "ubuntu2604-b200", "mint22-rtx4090", "fedora44-rtx4090"]


def rehearsed(plan: Plan, root: Path) -> Plan:
    """The same steps in the same order; each does nothing but leave its mark, and the headers' fails."""
    return replace(plan, steps=tuple(_step(step, root) for step in plan.steps))


def _step(step: Step, root: Path) -> Step:
    mark = root / step.id
    do = Run(("false",)) if step.id == "kernel.headers" else Run(("touch", str(mark)))
    return replace(step, actions=(do,), undo=(Run(("rm", str(mark))),) if step.undo else ())


@pytest.mark.parametrize("slug", HOSTS)
def test_nvidias_repositories_and_keys_go_when_the_headers_fail(slug: str, tmp_path: Path) -> None:
    machine, marks = Machine(tmp_path / "host"), tmp_path / "marks"
    machine.root.mkdir()
    marks.mkdir()
    plan = make_plan(assemble(load_recording(EXAMPLES / slug), slug), Spec(), load_catalog())
    results = execute(
        rehearsed(plan, marks),
        machine,
        run_id="r1",
        on_event=lambda _: None,
        stop=lambda: False,
        pause=lambda _: None,
        clock=lambda: 0.0,
    )
    by_id = {result.id: result.status for result in results}
    assert by_id["kernel.headers"] is StepStatus.FAILED
    assert by_id["repo.cuda"] is StepStatus.UNDONE
    # What comes from the distribution itself stays: the tools, and on Enterprise Linux EPEL and its builder repository.
    assert {path.name for path in marks.iterdir()} <= {"repo.tools", "repo.prerequisites"}
    assert [id for id, status in by_id.items() if status is StepStatus.DONE and id.startswith("driver")] == []
