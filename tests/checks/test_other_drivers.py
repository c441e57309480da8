"""Hosts whose driver is not setup's: what check says of it, and that toolkit and engines are looked at all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.cli.app import main
from gpunode.model.facts import DriverFacts, HostFacts, ToolkitFacts
from gpunode.model.platforms import PLATFORMS
from gpunode.model.report import CheckOutcome, Finding, NotApplicable
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
VGPU = h.host(platform="vgpu", pci=(replace(h.GPU, vgpu="a share"),))
GRID = PLATFORMS["vgpu"].hand_over


def outcome(host: HostFacts, id: str) -> CheckOutcome:
    return run_all(host, None, load_catalog()).results[id].outcome


def reason(host: HostFacts, id: str) -> str:
    found = outcome(host, id)
    assert isinstance(found, NotApplicable)
    return found.reason


@pytest.mark.parametrize(
    ("slug", "way"),
    [
        ("microos-l4", "install them in a new snapshot (`transactional-update pkg install`)"),
        ("fedora44-silverblue-rtx4090", "build them into the image"),
        ("ubuntu2204-aws-g6f", GRID),
        ("rocky9-vmware-vgpu", GRID),
    ],
)
def test_a_missing_driver_has_the_planners_way_and_no_setup_that_is_refused(
    slug: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--recorded", str(EXAMPLES / slug)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert way in shown
    assert "--only driver" not in shown


def test_a_vgpus_driver_is_looked_at_and_not_how_it_came() -> None:
    assert outcome(VGPU, "drv.module-loaded") is None
    assert outcome(VGPU, "dev.nodes") is None
    for id in ("drv.branch-eol", "drv.dkms-next", "drv.install-method", "boot.nouveau-blacklisted"):
        assert "only the vGPU guest (GRID) driver drives" in reason(VGPU, id)


@pytest.mark.parametrize(("platform", "says"), [("wsl", "Windows provides"), ("l4t", "board support package")])
def test_a_gpu_that_is_not_on_the_bus_needs_toolkit_and_engines_too(platform: str, says: str) -> None:
    host = h.host(platform=platform, pci=(), driver=DriverFacts(), toolkit=ToolkitFacts())
    assert isinstance(outcome(host, "ctk.installed"), Finding)
    assert outcome(host, "rt.docker-file") is None
    assert "not on the PCI bus" in reason(host, "pci.gpu-present")
    assert "no NVIDIA GPU on the PCI bus" in reason(host, "pci.link-width")
    gpu = replace(h.GPU, driver=None)  # an eGPU of no concern to the platform's driver
    for id in ("drv.module-loaded", "pci.driver-bound", "drv.dkms-next"):
        assert says in reason(replace(host, pci=(gpu,)), id)


@pytest.mark.parametrize(
    ("driver", "toolkit", "says"),
    [
        (DriverFacts(), ToolkitFacts(operator="/usr/local/nvidia/toolkit"), "/usr/local/nvidia/toolkit is its toolkit"),
        (DriverFacts(container=True), ToolkitFacts(), "/run/nvidia/driver is the root of its driver container"),
    ],
    ids=["its toolkit", "its driver container"],
)
def test_what_the_gpu_operator_brings_is_not_missed(driver: DriverFacts, toolkit: ToolkitFacts, says: str) -> None:
    host = h.host(driver=driver, toolkit=toolkit)
    for id in ("ctk.installed", "rt.docker-file", "rt.docker-live", "rt.effective-default", "rt.handler-binary"):
        assert reason(host, id) == f"the GPU Operator is in charge of toolkit and engines ({says})"


def test_a_node_of_the_operators_that_lost_its_gpus_fails() -> None:
    host = h.host(pci=(), driver=DriverFacts(), toolkit=ToolkitFacts(operator="/usr/local/nvidia/toolkit"), runtimes=())
    found = outcome(host, "pci.gpu-present")
    assert isinstance(found, Finding)
    assert "the GPU Operator's toolkit" in found.evidence
