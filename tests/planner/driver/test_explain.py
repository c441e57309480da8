"""The driver's decision is data in the plan: what was chosen, what was left and why, and how sure the facts are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import collect
from gpunode.model.driver import Alternative, DriverChoice
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.plan import make_plan
from gpunode.transport.recorded import Recorded

EXAMPLES = Path(__file__).parents[3] / "examples" / "hosts"
CATALOG = load_catalog()


def chosen(slug: str, spec: Spec | None = None) -> DriverChoice:
    host = collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug))
    choice = make_plan(host, spec or Spec(), CATALOG).driver
    assert choice is not None
    return choice


def test_a_new_driver_says_branch_source_and_end_of_support() -> None:
    choice = chosen("debian12-l4")
    branch = CATALOG.branch(choice.branch)
    assert branch is not None
    assert (choice.version, choice.newest_known) == (None, branch.installable)
    assert (choice.branch_kind, choice.branch_status) == (branch.kind, branch.status)
    assert choice.end_of_support == branch.end
    assert (choice.source, choice.source_title) == ("cuda", "NVIDIA's repository for Debian 12")


def test_every_alternative_is_one_thing_and_says_why_or_how() -> None:
    left = chosen("ubuntu2404-secureboot-l40s").alternatives
    assert [(one.branch, one.flavour, one.source).count(None) for one in left] == [2] * len(left)
    assert all(one.reason or one.option for one in left)


@pytest.mark.parametrize(
    ("slug", "branch", "option"),
    [
        pytest.param("rocky9-l40s", 580, "--driver 580", id="what can be had says what to type"),
        pytest.param("rocky9-l40s", 610, "", id="what has no support any more does not"),
        pytest.param("ubuntu2404-secureboot-l40s", 615, "", id="nor what the source lacks"),
    ],
)
def test_an_option_is_there_only_where_it_can_be_had(slug: str, branch: int, option: str) -> None:
    found: Alternative = next(one for one in chosen(slug).alternatives if one.branch == branch)
    assert found.option == option


def test_a_driver_that_stays_is_told_as_it_is_on_the_host() -> None:
    choice = chosen("debian12-ready", Spec(driver=DriverRequest.parse("auto")))
    assert (choice.kept, choice.version, choice.alternatives) == (True, "595.91.07", ())
    assert [row.about for row in choice.confidence] == ["Debian 12", "branch 595", "Ada"]
    assert {row.grade for row in choice.confidence} <= {"documented", "inferred", "unverified"}


def test_a_driver_that_no_package_brought_has_no_source() -> None:
    choice = chosen("debian12-runfile")
    assert (choice.source, choice.source_title, choice.packages) == ("none", "", ())
    assert choice.foreign is not None
    assert "nvidia-uninstall" in choice.foreign.hand_over
