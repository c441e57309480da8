"""On a host whose /usr is an image's, nothing is installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import DriverFacts, HostFacts, ToolkitFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, Spec, ToolkitRequest
from gpunode.planner.install.image_based import WAYS
from gpunode.planner.plan import make_plan

from .builders import L4, host

CATALOG = load_catalog()
DRIVER = DriverFacts("595.91.07", "open", "595.91.07", "open")
TOOLKIT = ToolkitFacts("1.20.0", "/usr/bin/nvidia-container-runtime", True, "/usr/bin/nvidia-container-runtime-hook")


def plan(facts: HostFacts, spec: Spec) -> Plan:
    return make_plan(facts, spec, CATALOG)


def refusal(facts: HostFacts, spec: Spec) -> UnsupportedHost:
    with pytest.raises(UnsupportedHost) as refused:
        plan(facts, spec)
    return refused.value


@pytest.mark.parametrize("kind", [*WAYS, "a kind of tomorrow"])
@pytest.mark.parametrize("os", ["rocky-10", "gentoo"], ids=["a known distribution", "one without a row"])
def test_what_the_image_lacks_is_refused_with_the_way_of_this_kind_of_host(kind: str, os: str) -> None:
    fault = refusal(host(L4, os=os, image_based=kind), Spec())
    assert "the driver and the toolkit cannot be installed with packages" in fault.problem
    way = WAYS.get(kind, WAYS["read-only"])
    assert (fault.evidence, fault.remedy.text) == (way.evidence, f"{way.remedy}; then gpunode setup --only runtime")


@pytest.mark.parametrize(
    ("facts", "spec", "problem"),
    [
        ({"toolkit": TOOLKIT}, Spec(), "the driver cannot"),
        ({"driver": DRIVER}, Spec(), "the toolkit cannot"),
        ({"driver": DRIVER, "toolkit": replace(TOOLKIT, hook_path=None)}, Spec(), "the toolkit cannot"),
        ({"driver": DRIVER, "toolkit": TOOLKIT}, Spec(driver=DriverRequest.parse("580")), "the driver cannot"),
        ({"driver": DRIVER, "toolkit": TOOLKIT}, Spec(driver=DriverRequest.parse("595.99.02")), "the driver cannot"),
        ({"driver": DRIVER, "toolkit": TOOLKIT}, Spec(toolkit=ToolkitRequest.parse("1.19.1")), "the toolkit cannot"),
        ({"driver": DRIVER, "toolkit": TOOLKIT}, Spec(cuda="13.0"), "CUDA 13.0 cannot"),
        (
            {"driver": DRIVER},
            Spec(only=("driver",), driver=DriverRequest.parse("none")),
            "the driver cannot be removed",
        ),
    ],
    ids=["driver", "toolkit", "half a toolkit", "branch", "version", "toolkit's version", "cuda", "removal"],
)
def test_another_thing_than_the_image_has_is_refused(facts: dict[str, object], spec: Spec, problem: str) -> None:
    assert problem in refusal(host(L4, os="rocky-10", image_based="ostree", **facts), spec).problem


@pytest.mark.parametrize("driver", ["auto", "595", "595.91.07"])
def test_what_the_image_has_is_kept(driver: str) -> None:
    facts = host(L4, os="rocky-10", image_based="ostree", driver=DRIVER, toolkit=TOOLKIT)
    made = plan(facts, Spec(driver=DriverRequest.parse(driver)))
    assert made.steps == ()
    assert made.reboot is None
    assert [kept.text for kept in made.kept[:2]] == [
        "driver 595.91.07 of this host's image",
        "toolkit 1.20.0 of this host's image",
    ]


def test_the_engines_alone_are_not_refused() -> None:
    assert plan(host(L4, os="rocky-10", image_based="ostree"), Spec(only=("runtime",))).steps == ()
