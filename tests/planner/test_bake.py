"""Images: no GPU, no reboot, no daemon; while one is being built, the running kernel is somebody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, KernelTree
from gpunode.model.packages import PackageVersion
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, Flavour, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import H100, RELEASE, host, kernel

CATALOG = load_catalog()
BAKED = Spec(driver=DriverRequest.parse("595"), flavour=Flavour.OPEN, allow_no_gpu=True, only=("driver", "toolkit"))
IMAGES = ("6.8.0-60-generic", "6.8.0-61-generic")
TREES = tuple(KernelTree(release, True, False, None) for release in IMAGES)
CHROOT = host(kernel=kernel(trees=TREES, next_boot=IMAGES[1]), init="chroot")
VIRTUAL = host()
DRIVER = {"nvidia-open": PackageVersion("595.91.07-1"), "dkms": PackageVersion("3.0.11")}


def plan(facts: HostFacts, spec: Spec = BAKED) -> Plan:
    return make_plan(facts, spec, CATALOG)


def commands(made: Plan) -> list[str]:
    return [" ".join(a.argv) for step in made.steps for a in step.actions if isinstance(a, Run)]


@pytest.mark.parametrize("facts", [CHROOT, VIRTUAL], ids=["a chroot", "a machine without a GPU"])
def test_the_driver_goes_in_and_nothing_is_loaded_or_rebooted(facts: HostFacts) -> None:
    made = plan(facts)
    assert "driver.install" in [step.id for step in made.steps]
    assert made.reboot is None
    assert not [c for c in commands(made) if c.startswith("modprobe") or "--now" in c]
    assert any(c.startswith("systemctl enable nvidia-persistenced") for c in commands(made))


def test_headers_are_for_the_kernels_in_the_image() -> None:
    step = next(s for s in plan(CHROOT).steps if s.id == "kernel.headers")
    assert all(f"linux-headers-{release}" in step.title for release in IMAGES)
    assert RELEASE not in step.title


def test_a_module_is_built_for_each_of_them() -> None:
    there = replace(VIRTUAL.packages, installed={**VIRTUAL.packages.installed, **DRIVER})
    step = next(s for s in plan(replace(CHROOT, packages=there)).steps if s.id == "driver.build")
    assert [a.argv[-1] for a in step.actions if isinstance(a, Run) and a.argv[0] == "dkms"] == list(IMAGES)


def test_without_the_word_a_host_without_a_gpu_is_refused() -> None:
    with pytest.raises(UnsupportedHost, match="no NVIDIA GPU"):
        plan(VIRTUAL, replace(BAKED, allow_no_gpu=False))


def test_without_the_word_an_image_is_refused_and_the_machines_gpus_are_not_spoken_of() -> None:
    with pytest.raises(UnsupportedHost, match="an image is being built here") as refused:
        plan(CHROOT, replace(BAKED, allow_no_gpu=False))
    assert "--allow-no-gpu" in str(refused.value.remedy)


def test_an_image_without_a_kernel_gets_no_driver_and_the_remedy_plans() -> None:
    bare = replace(CHROOT, kernel=replace(CHROOT.kernel, release="", trees=(), next_boot=None))
    with pytest.raises(UnsupportedHost, match="no kernel that the driver's module could be built for") as refused:
        plan(bare)
    assert refused.value.remedy.command == ("gpunode", "setup", "--only", "toolkit,runtime")
    assert "toolkit.install" in [step.id for step in plan(bare, replace(Spec(), only=("toolkit", "runtime"))).steps]


@pytest.mark.parametrize(("facts", "offline"), [(CHROOT, True), (VIRTUAL, False)], ids=["an image", "a machine"])
def test_only_the_commands_of_an_image_are_kept_from_systemd(facts: HostFacts, offline: bool) -> None:
    """A build may see the /run of the machine, where its systemd would take orders."""
    runs = [a for step in plan(facts).steps for a in (*step.actions, *step.undo) if isinstance(a, Run)]
    assert runs
    assert {("SYSTEMD_OFFLINE", "1") in run.env for run in runs} == {offline}


@pytest.mark.parametrize("modules", [("nouveau",), ()], ids=["nouveau is loaded outside", "nothing is"])
def test_the_machine_that_the_image_is_made_on_is_left_alone(modules: tuple[str, ...]) -> None:
    """On the machine itself nouveau would ask for a reboot, and without it the driver would be loaded at once."""
    outside = host(H100, kernel=kernel(*modules))
    inside = make_plan(replace(outside, init="chroot"), Spec(), CATALOG)
    assert not [c for c in commands(inside) if c.startswith("modprobe") or "--now" in c]
    assert inside.reboot is None
    there = make_plan(outside, Spec(), CATALOG)
    assert there.reboot or [c for c in commands(there) if c.startswith("modprobe")]
