"""rpm knows no half-configured package: what a killed transaction left is told by what is missing beside it."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, host, packages

MODULE = "kmod-nvidia-open-dkms"
VERSION = "3:595.91.07-1.el9"


@pytest.mark.parametrize(
    ("there", "installs"),
    [((MODULE,), True), ((MODULE, "nvidia-driver-cuda"), False)],
    ids=["the module came, its tools did not", "module and tools, as some install them by hand"],
)
def test_a_module_without_its_tools_is_no_driver(there: tuple[str, ...], installs: bool) -> None:
    facts = host(L4, os="rocky-9", packages=packages(dict.fromkeys(there, VERSION), manager="dnf"))
    steps = {step.id: step for step in make_plan(facts, Spec(), load_catalog()).steps}
    assert ("driver.install" in steps) is installs
    if installs:
        said = [run.description for run in steps["driver.install"].actions if isinstance(run, Run)]
        assert said.index(f"dnf remove {MODULE}") < said.index(
            next(s for s in said if s.startswith("dnf install nvidia-open"))
        )
