"""Where NVIDIA's GPU Operator is in charge, every part of setup that is its own is refused, or left to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import DriverFacts, HostFacts, KubernetesFacts, RuntimeFacts, ToolkitFacts
from gpunode.model.kubernetes import DevicePlugins, PluginPod
from gpunode.model.operator import driver_pods
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import H100, host

CATALOG = load_catalog()
TOOLKIT = ToolkitFacts(operator="/usr/local/nvidia/toolkit")
ENGINE = RuntimeFacts(
    "containerd", "1.7.28", "/etc/containerd/config.toml", "containerd.service", "/run/containerd/containerd.sock",
    active=True, effective_default="runc", handlers=("nvidia", "runc"),
)  # fmt: skip
BOTH = host(H100, driver=DriverFacts(container=True), toolkit=TOOLKIT, runtimes=(ENGINE,))
ITS_TOOLKIT = replace(BOTH, driver=DriverFacts())
ITS_DRIVER = replace(BOTH, toolkit=ToolkitFacts())


@pytest.mark.parametrize(
    ("facts", "evidence", "switches"),
    [
        (
            BOTH,
            "/run/nvidia/driver is the root of its driver container; /usr/local/nvidia/toolkit is its toolkit",
            "driver.enabled=false and toolkit.enabled=false",
        ),
        (ITS_DRIVER, "/run/nvidia/driver is the root of its driver container", "set driver.enabled=false in"),
    ],
    ids=["driver and toolkit", "driver"],
)
@pytest.mark.parametrize("only", [("driver", "toolkit", "runtime"), ("toolkit",), ("runtime",), ("toolkit", "runtime")])
def test_with_its_driver_container_every_part_is_refused_alike(
    facts: HostFacts, evidence: str, switches: str, only: tuple[str, ...]
) -> None:
    with pytest.raises(UnsupportedHost, match="GPU Operator is in charge of driver, toolkit and engines") as refused:
        make_plan(facts, Spec(only=only), CATALOG)
    assert refused.value.evidence == evidence
    assert switches in refused.value.remedy.text
    assert refused.value.remedy.command == ("gpunode", "setup")


def test_while_its_driver_starts_none_is_installed_beside_it() -> None:
    pods = (
        PluginPod("gpu-operator_nvidia-driver-daemonset-5hx9w", "k8s-driver-manager", 0),
        PluginPod("gpu-operator_nvidia-driver-daemonset-5hx9w", "nvidia-driver-ctr", 12),
    )
    plugins = DevicePlugins("/var/lib/kubelet/device-plugins", pods=pods)
    starts = replace(ITS_DRIVER, kubernetes=KubernetesFacts(True, device_plugins=plugins))
    with pytest.raises(UnsupportedHost, match="GPU Operator is in charge of driver") as refused:
        make_plan(starts, Spec(), CATALOG)
    assert refused.value.evidence == "gpu-operator_nvidia-driver-daemonset-5hx9w brings its driver"


def test_what_prepares_gpus_for_virtual_machines_brings_no_driver() -> None:
    pods = (PluginPod("gpu-operator_nvidia-vfio-manager-2k4vb", "k8s-driver-manager", 0),)
    assert driver_pods(KubernetesFacts(True, device_plugins=DevicePlugins("/x", pods=pods))) == ()


@pytest.mark.parametrize("only", [("toolkit",), ("runtime",), ("toolkit", "runtime")])
def test_its_toolkit_and_engines_are_refused_where_the_driver_is_the_hosts(only: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedHost, match="GPU Operator is in charge of toolkit and engines") as refused:
        make_plan(ITS_TOOLKIT, Spec(only=only), CATALOG)
    assert "set toolkit.enabled=false in" in refused.value.remedy.text


@pytest.mark.parametrize("spec", [Spec(), Spec(runtime=RuntimeSpec(cdi=True))], ids=["setup", "setup --cdi"])
def test_the_driver_of_the_host_is_planned_next_to_its_toolkit(spec: Spec) -> None:
    made = make_plan(ITS_TOOLKIT, spec, CATALOG)
    ids = [step.id for step in made.steps]
    assert "driver.install" in ids
    assert not [id for id in ids if id.startswith(("toolkit", "containerd", "cdi", "repo.toolkit"))]
    assert [kept.text for kept in made.kept if kept.id == "toolkit.install"] == [
        "the GPU Operator is in charge of toolkit and engines (/usr/local/nvidia/toolkit is its toolkit); gpunode "
        "leaves them to it"
    ]


def test_the_driver_alone_is_no_concern_of_its_toolkit() -> None:
    made = make_plan(ITS_TOOLKIT, Spec(only=("driver",)), CATALOG)
    assert "driver.install" in [step.id for step in made.steps]
    assert "toolkit.install" not in [kept.id for kept in made.kept]
