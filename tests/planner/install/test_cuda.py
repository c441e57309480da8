from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, Spec, parse_cuda
from gpunode.planner.plan import make_plan
from tests.planner.builders import H100, L4, P100, V100, host, packages

CATALOG = load_catalog()


def commands(plan: Plan, step: str) -> list[str]:
    return [" ".join(a.argv) for s in plan.steps if s.id == step for a in s.actions if isinstance(a, Run)]


def test_the_toolkit_is_named_by_version_and_its_path_is_said() -> None:
    plan = make_plan(host(L4), Spec(cuda="13.0"), CATALOG)
    step = next(s for s in plan.steps if s.id == "cuda.install")
    assert step.title == "install cuda-toolkit-13-0 into /usr/local/cuda-13.0"
    assert any(c.endswith(" cuda-toolkit-13-0") for c in commands(plan, "cuda.install"))
    assert [s.id for s in plan.steps].count("repo.cuda") == 1, "the driver's repository is CUDA's"
    words = {word for s in plan.steps for a in s.actions if isinstance(a, Run) for word in a.argv}
    assert "cuda" not in words, "that package brings a driver of its own"


def test_an_installed_toolkit_stays() -> None:
    plan = make_plan(host(L4, packages=packages({"cuda-toolkit-13-0": "13.0.2-1"})), Spec(cuda="13.0"), CATALOG)
    assert "cuda.install" not in [s.id for s in plan.steps]
    assert any(k.text == "CUDA 13.0 is installed in /usr/local/cuda-13.0" for k in plan.kept)


def test_a_toolkit_above_the_drivers_level_says_what_does_not_work() -> None:
    plan = make_plan(host(L4), Spec(cuda="13.2", driver=DriverRequest.parse("580")), CATALOG)
    why = next(s.why for s in plan.steps if s.id == "cuda.install")
    assert "13.2 runs on it by minor version compatibility, PTX does not" in why


def test_without_cuda_nothing_is_said_of_it() -> None:
    assert not commands(make_plan(host(L4), Spec(), CATALOG), "cuda.install")


def test_a_box_with_one_gpu_that_it_still_builds_for_gets_it() -> None:
    plan = make_plan(host(P100, H100), Spec(cuda="13.0"), CATALOG)
    assert "cuda.install" in [s.id for s in plan.steps]


@pytest.mark.parametrize(
    ("facts", "spec", "says", "remedy"),
    [
        pytest.param(host(V100), Spec(cuda="13.0"), "no longer builds for Volta", "--cuda 12.9", id="13 dropped Volta"),
        pytest.param(
            host(L4, os="ubuntu-20.04"),
            Spec(cuda="13.0"),
            "does not run on driver branch 570",
            "12.9",
            id="an old driver",
        ),
        pytest.param(host(L4), Spec(cuda="14.7"), "not a toolkit", "choose one", id="a version that does not exist"),
        pytest.param(host(L4, os="arch"), Spec(cuda="13.0"), "no packages for Arch", "containers", id="no repository"),
    ],
)
def test_what_does_not_go_together_is_refused(facts: HostFacts, spec: Spec, says: str, remedy: str) -> None:
    with pytest.raises(UnsupportedHost, match=says) as caught:
        make_plan(facts, spec, CATALOG)
    assert remedy in caught.value.remedy.text


@pytest.mark.parametrize(("typed", "version"), [("13.0", "13.0"), (" 12.9 ", "12.9"), ("none", None)])
def test_cuda_is_a_version_with_its_minor_number_or_none(typed: str, version: str | None) -> None:
    assert parse_cuda(typed) == version


@pytest.mark.parametrize("typed", ["13", "13.0.2", "cuda-13", "latest", ""])
def test_anything_else_names_the_forms(typed: str) -> None:
    with pytest.raises(UsageError, match="not a CUDA toolkit") as caught:
        parse_cuda(typed)
    assert "13.0" in caught.value.evidence
