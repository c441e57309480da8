"""On a machine that brings its own driver, toolkit and engines are set up, and no driver is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import DriverFacts, HostFacts
from gpunode.model.platforms import PLATFORMS, platform_origin
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, gpus, host

CATALOG = load_catalog()


def on(platform: str) -> HostFacts:
    """A vGPU and a container's GPU are on the PCI bus, what the other platforms have is not."""
    seen = {"vgpu": (replace(*gpus(L4), vgpu="a share"),), "container": gpus(L4)}
    return host(platform=platform, pci=seen.get(platform, ()))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_toolkit_is_planned_and_the_driver_is_left_with_the_way_to_it(platform: str) -> None:
    facts = on(platform)
    made = make_plan(facts, Spec(), CATALOG)
    assert [step.id for step in made.steps] == ["repo.toolkit", "toolkit.install"]
    origin = platform_origin(facts)
    assert origin is not None
    assert f"{origin.summary} ({origin.evidence})" in made.kept[0].text
    assert made.kept[0].text.endswith(origin.hand_over)
    assert made.driver is None
    assert made.reboot is None


@pytest.mark.parametrize(
    "spec",
    [
        Spec(driver=DriverRequest.parse("580")),
        Spec(only=("driver",)),
        Spec(cuda="13.0"),
        Spec(only=("driver",), driver=DriverRequest.parse("none")),
    ],
    ids=["a branch", "only the driver", "cuda", "removal"],
)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_driver_of_its_own_is_refused_and_the_remedy_plans(platform: str, spec: Spec) -> None:
    facts = on(platform)
    with pytest.raises(UnsupportedHost) as refused:
        make_plan(facts, spec, CATALOG)
    assert PLATFORMS[platform].summary in refused.value.problem
    assert refused.value.remedy.command == ("gpunode", "setup", "--only", "toolkit,runtime")
    assert make_plan(facts, replace(Spec(), only=("toolkit", "runtime")), CATALOG).steps


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (DriverFacts(), "no driver is installed: this virtual machine has a vGPU"),
        (DriverFacts(installed="570.237"), "the driver is not changed: this virtual machine has a vGPU"),
    ],
    ids=["none there", "there"],
)
def test_a_vgpu_guest_without_a_driver_is_told_so(driver: DriverFacts, said: str) -> None:
    made = make_plan(replace(on("vgpu"), driver=driver), Spec(), CATALOG)
    assert made.kept[0].text.startswith(said)
    assert "(0000:19:00.0: a share)" in made.kept[0].text


def test_a_container_on_a_machine_without_a_gpu_is_refused() -> None:
    with pytest.raises(UnsupportedHost, match="no NVIDIA GPU on the PCI bus"):
        make_plan(host(platform="container"), Spec(), CATALOG)


def test_an_unknown_platform_is_an_ordinary_machine() -> None:
    with pytest.raises(UnsupportedHost, match="no NVIDIA GPU on the PCI bus"):
        make_plan(host(platform="a platform of tomorrow"), Spec(), CATALOG)
