"""Services beside the driver, by what joins the GPUs, and two settings that only some machines need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import (
    DeviceNode,
    DriverFacts,
    HostFacts,
    KubernetesFacts,
    RuntimeFacts,
    ServiceFacts,
    ToolkitFacts,
)
from gpunode.model.files import FileFacts
from gpunode.model.plan import LOAD_STEP, Kept, Step
from gpunode.model.spec import Spec
from gpunode.planner.driver.services import CHAR_RULE, char_links_step, coherent_step, modules, services_step
from gpunode.planner.install.driver import driver_choice
from gpunode.planner.plan import make_plan
from gpunode.planner.site import Site, survey
from tests.planner.builders import B200, GH200, H100, gpus, host, packages, switches

CATALOG = load_catalog()
GB200 = "2941"
MANAGED = DriverFacts(switch_management=("0000:ca:00.0",))
RUNNING = ServiceFacts("loaded", "active", "running", "enabled")
KUBELET = KubernetesFacts(kubelet=True)
HGX_H100 = host(H100, pci=(*gpus(H100), *switches(4)))


def site(facts: HostFacts) -> Site:
    return survey(facts, Spec(), CATALOG)


@pytest.mark.parametrize(
    ("facts", "fabric", "units"),
    [
        (host(H100), None, ["nvidia-persistenced"]),
        (HGX_H100, "nvswitch", ["nvidia-persistenced", "nvidia-fabricmanager"]),
        (host(B200, driver=MANAGED), "nvlink5", ["nvidia-persistenced", "nvidia-fabricmanager"]),
        (host(B200), None, ["nvidia-persistenced"]),
        (host(GB200), "imex", ["nvidia-persistenced", "nvidia-imex"]),
        (host(H100, driver=MANAGED), None, ["nvidia-persistenced"]),
    ],
    ids=[
        "one GPU",
        "NVSwitch on PCI",
        "HGX B200",
        "a B200 in a virtual machine",
        "a GB200 tray",
        "an H100 has no such switches",
    ],
)
def test_units_by_fabric(facts: HostFacts, fabric: str | None, units: list[str]) -> None:
    here = site(facts)
    choice = driver_choice(here)
    step = services_step(here, choice, now=True)
    assert here.fabric == fabric
    assert isinstance(step, Step)
    enabled = [a.argv[-1].removesuffix(".service") for a in step.actions if isinstance(a, Run)]
    assert enabled == units
    running = replace(facts, services={f"{unit}.service": RUNNING for unit in units})
    kept = services_step(site(running), choice, now=True)
    assert isinstance(kept, Kept)


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        (host(B200, driver=MANAGED), {"nvidia-fabricmanager", "nvlsm"}),
        (HGX_H100, {"nvidia-fabricmanager"}),
        (host(GB200), {"nvidia-imex"}),
        (host(B200), set()),
    ],
    ids=["nvlink5", "nvswitch", "imex", "alone"],
)
def test_packages_by_fabric(facts: HostFacts, wanted: set[str]) -> None:
    chosen = set(driver_choice(site(facts)).packages)
    assert chosen & {"nvidia-fabricmanager", "nvlsm", "nvidia-imex"} == wanted


def test_the_subnet_manager_of_nvlink5_speaks_through_ib_umad() -> None:
    assert modules(site(host(B200, driver=MANAGED))) == ("nvidia", "nvidia-uvm", "ib_umad")
    assert modules(site(host(B200))) == ("nvidia", "nvidia-uvm")


def extra(facts: HostFacts) -> list[str]:
    steps = make_plan(facts, Spec(only=("driver",)), CATALOG).steps
    return [step.title for step in steps if step.id == "kernel.extra-modules"]


def test_the_package_with_ib_umad_comes_where_the_kernel_is_without_it() -> None:
    without = host(B200, driver=replace(MANAGED, umad=False))
    name = f"linux-modules-extra-{without.kernel.release}"
    assert extra(without) == [f"install {name}"]
    order = [step.id for step in make_plan(without, Spec(only=("driver",)), CATALOG).steps]
    assert order.index("kernel.extra-modules") < order.index(LOAD_STEP)
    for has in (True, None):
        assert extra(host(B200, driver=replace(MANAGED, umad=has))) == []
    assert extra(host(H100, driver=replace(MANAGED, umad=False))) == [], "no such switches"
    assert extra(host(B200, os="rocky-9", driver=replace(MANAGED, umad=False))) == [], "no such package"
    there = packages({name: "6.8.0-51.52"})
    assert extra(host(B200, driver=replace(MANAGED, umad=False), packages=there)) == []


SET = DriverFacts(params=MappingProxyType({"CoherentGPUMemoryMode": "driver"}))


@pytest.mark.parametrize(
    ("facts", "planned"),
    [
        (host(GH200, kubernetes=KUBELET), True),
        (host(GB200, kubernetes=KUBELET), True),
        (host(GH200), False),
        (host(H100, kubernetes=KUBELET), False),
        (host(GH200, kubernetes=KUBELET, driver=SET), False),
    ],
    ids=["GH200 in a cluster", "GB200 in a cluster", "no kubelet", "not coherent", "set already"],
)
def test_coherent_memory_is_the_drivers_on_kubernetes_nodes(facts: HostFacts, planned: bool) -> None:
    here = site(facts)
    assert (coherent_step(here, driver_choice(here)) is not None) is planned


def containers(
    toolkit: str = "1.17.8", *, systemd: bool = True, link: bool = False, files: Mapping[str, FileFacts] | None = None
) -> HostFacts:
    docker = RuntimeFacts("docker", "28.5.2", "/etc/docker/daemon.json", "docker.service", "/run/docker.sock")
    return host(
        H100,
        packages=packages({}),
        devices=(DeviceNode("/dev/nvidia0", 195, 0, 0o666, link),),
        toolkit=ToolkitFacts(toolkit),
        runtimes=(replace(docker, systemd_cgroup=MappingProxyType({"runc": systemd})),),
        files=files or {},
    )


CONFIG = "/etc/nvidia-container-runtime/config.toml"
LEGACY = {CONFIG: FileFacts(CONFIG, '[nvidia-container-runtime]\nmode = "legacy"\n')}
CDI = {CONFIG: FileFacts(CONFIG, '[nvidia-container-runtime]\nmode = "cdi"\n')}
COMMENTED = {CONFIG: FileFacts(CONFIG, '[nvidia-container-runtime]\nmode = "legacy" # for old images\n')}
INLINE = {CONFIG: FileFacts(CONFIG, 'nvidia-container-runtime = { mode = "legacy" }\n')}
ELSEWHERE = {CONFIG: FileFacts(CONFIG, '[other]\nmode = "legacy"\n')}


@pytest.mark.parametrize(
    ("facts", "planned"),
    [
        (containers(), True),
        (containers("1.20.0"), False),
        (containers("1.20.0", files=LEGACY), True),
        (containers("1.20.0", files=COMMENTED), True),
        (containers("1.20.0", files=INLINE), True),
        (containers("1.20.0", files=ELSEWHERE), False),
        (containers(files=CDI), False),
        (containers(systemd=False), False),
        (containers(link=True), False),
    ],
    ids=[
        "an old toolkit",
        "CDI by default",
        "mode legacy",
        "legacy with a comment",
        "legacy in an inline table",
        "a mode of another table",
        "mode cdi",
        "cgroupfs",
        "linked already",
    ],
)
def test_links_in_dev_char(facts: HostFacts, planned: bool) -> None:
    step = char_links_step(site(facts))
    assert (step is not None) is planned
    if step:
        assert [a.path for a in step.actions if isinstance(a, PutFile)] == [CHAR_RULE]
