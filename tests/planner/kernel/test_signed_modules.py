"""Ubuntu's own modules: the driver that they follow is not pinned, so that by apt's own answer each kernel has one."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts, HostFacts, JournalFacts, KernelTree, SecurityFacts
from gpunode.model.plan import HOLD_STEP, MODULES_STEP, UNHOLD_STEP, Plan, Step
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from tests.packages.test_silent_mirror import apt, own_apt
from tests.planner.builders import H100, RELEASE, host, kernel, packages

CATALOG = load_catalog()
SECURE = host(H100, security=SecurityFacts(secure_boot=True))
HEADLESS, UTILS = "nvidia-headless-no-dkms-595-server-open", "nvidia-utils-595-server"
COMMON, LIBRARIES = "nvidia-kernel-common-595-server", "libnvidia-compute-595-server"
META, FOLLOWING = "linux-modules-nvidia-595-server-open-generic", "6.8.0-87-generic"
OLD, NEW = "595.91.07", "595.99.01"
DRIVER = dict.fromkeys((HEADLESS, UTILS, COMMON, LIBRARIES), f"{OLD}-0ubuntu0.24.04.1")
MODULES = {META: "6.8.0-51.52+1", f"linux-modules-nvidia-595-server-open-{RELEASE}": "6.8.0-51.52+1"}


def installed(*, held: Collection[str] = (), pinned: Collection[str] = (), next_has_module: bool = True) -> HostFacts:
    """What setup leaves, once the next kernel is there; `pinned`: those of `held` that gpunode pinned."""
    module = "/lib/modules/x/nvidia.ko"
    trees = (
        KernelTree(RELEASE, True, False, module),
        KernelTree(FOLLOWING, True, False, module if next_has_module else None),
    )
    return replace(
        SECURE,
        driver=DriverFacts(OLD, "open", OLD, "open"),
        kernel=kernel("nvidia", "nvidia_uvm", trees=trees, next_boot=FOLLOWING),
        packages=packages(DRIVER | MODULES | {"linux-image-generic": "6.8.0-51.52"}, held=tuple(held)),
        journal=JournalFacts(pinned=frozenset(pinned)),
    )


def plan_of(facts: HostFacts, **spec: Any) -> Plan:
    return make_plan(facts, replace(Spec(only=("driver",)), **spec), CATALOG)


def marked(plan: Plan, verb: str) -> set[str]:
    runs = [action.argv for step in plan.steps for action in step.actions if isinstance(action, Run)]
    return {name for argv in runs if argv[:2] == ("apt-mark", verb) for name in argv[2:]}


def step_of(plan: Plan, id: str) -> Step:
    return next(step for step in plan.steps if step.id == id)


def shown(step: Step) -> list[str]:
    return [a.description or " ".join(a.argv) for a in step.actions if isinstance(a, Run)]


@pytest.mark.parametrize(
    "facts", [SECURE, installed(), installed(next_has_module=False)], ids=["bare", "set up", "bare next"]
)
def test_the_driver_of_signed_modules_is_not_pinned(facts: HostFacts) -> None:
    plan = plan_of(facts)
    assert marked(plan, "hold") == set()
    assert HOLD_STEP not in [step.id for step in plan.steps]
    assert not any("pin the set" in step.title for step in plan.steps)


def test_a_driver_that_dkms_builds_is_pinned_next_to_signed_modules_as_well() -> None:
    facts = installed()
    dkms = packages({"nvidia-dkms-595-server-open": f"{OLD}-0ubuntu0.24.04.1"}).installed
    built = {**facts.packages.installed, **dkms}
    assert HOLD_STEP in [
        step.id for step in plan_of(replace(facts, packages=replace(facts.packages, installed=built))).steps
    ]


def test_gpunodes_own_pins_from_before_are_removed_and_those_of_others_stay() -> None:
    plan = plan_of(installed(held=(HEADLESS, UTILS, LIBRARIES), pinned=(HEADLESS, UTILS)))
    assert marked(plan, "unhold") == {HEADLESS, UTILS}
    assert "the next kernel has none" in step_of(plan, UNHOLD_STEP).why
    for facts in (installed(held=(UTILS,)), installed(held=("linux-image-generic", UTILS), pinned=(UTILS,))):
        assert UNHOLD_STEP not in [step.id for step in plan_of(facts).steps]


def test_a_kernel_that_boots_next_without_its_signed_module_gets_one() -> None:
    facts = installed(next_has_module=False)
    step = step_of(plan_of(facts), MODULES_STEP)
    assert step.replan_after
    assert f"apt-get install {' '.join(sorted(DRIVER))} {META}" in shown(step)
    assert MODULES_STEP not in [s.id for s in plan_of(installed()).steps]


def test_the_module_is_that_of_the_kernel_that_boots_next_and_not_of_the_running_one() -> None:
    """Ubuntu's newer kernel (HWE) was installed next to the release's own, which still runs."""
    following = "6.14.0-29-generic"
    facts = installed(next_has_module=False)
    trees = (facts.kernel.trees[0], KernelTree(following, True, False, None))
    images = {"linux-image-generic": "6.8.0-51.52", "linux-image-generic-hwe-24.04": "6.14.0-29.29~24.04.1"}
    there = {**facts.packages.installed, **packages(images).installed}
    newer = replace(
        facts,
        kernel=replace(facts.kernel, trees=trees, next_boot=following),
        packages=replace(facts.packages, installed=there),
    )
    assert f"apt-get install {' '.join(sorted(DRIVER))} {META}-hwe-24.04" in shown(
        step_of(plan_of(newer), MODULES_STEP)
    )


@pytest.mark.parametrize(
    ("lead", "meta"),
    [
        ("nvidia-driver-595-open", "linux-modules-nvidia-595-open-generic"),
        ("nvidia-driver-595-server", "linux-modules-nvidia-595-server-generic"),
        ("nvidia-driver-595", "linux-modules-nvidia-595-generic"),
    ],
)
def test_so_does_one_next_to_a_driver_that_ubuntu_drivers_installed(lead: str, meta: str) -> None:
    facts = installed(next_has_module=False)
    there = dict.fromkeys((lead, "libnvidia-compute-595"), f"{OLD}-0ubuntu0.24.04.1")
    others = {meta: "6.8.0-51.52+1", "linux-modules-nvidia-535-generic": "6.8.0-51.52", "linux-image-generic": "6.8.0"}
    step = step_of(plan_of(replace(facts, packages=packages(there | others))), MODULES_STEP)
    assert f"apt-get install libnvidia-compute-595 {lead} {meta}" in shown(step)
    assert f"look for the module of {FOLLOWING}" in shown(step)


def test_what_others_pinned_of_it_is_released_for_that_and_named() -> None:
    plan = plan_of(installed(held=(HEADLESS, UTILS), pinned=(HEADLESS,), next_has_module=False))
    step = step_of(plan, MODULES_STEP)
    assert step.title.endswith(f"for {FOLLOWING}; this removes the pin of {UTILS}, not installed by gpunode")
    assert f"apt-mark unhold {UTILS}" in shown(step)
    assert [" ".join(a.argv) for a in step.undo if isinstance(a, Run)] == [f"apt-mark hold {UTILS}"]


def control(name: str, version: str, depends: str = "", **fields: str) -> str:
    given = {"Package": name, "Version": version, "Architecture": "all", "Description": "x", "Maintainer": "x <x@x>"}
    given |= {"Depends": depends} if depends else {}
    return "".join(f"{key}: {value}\n" for key, value in (given | fields).items())


def ubuntu(driver: str, release: str, revision: str) -> Mapping[str, tuple[str, str]]:
    """name -> (version, Depends), as linux-restricted-modules and nvidia-graphics-drivers have them."""
    of_kernel, version = META.replace("generic", release), f"{driver}-0ubuntu0.24.04.1"
    return {
        "linux-image-generic": (revision, f"linux-image-{release}"),
        f"linux-image-{release}": (revision, ""),
        META: (f"{revision}+1", f"{of_kernel}, {COMMON} (>= {driver})"),
        of_kernel: (f"{revision}+1", f"linux-image-{release}, {COMMON} (<= {driver}-1), {COMMON} (>= {driver})"),
        HEADLESS: (version, f"{LIBRARIES} (= {version}), {COMMON} (= {version})"),
        UTILS: (version, f"{LIBRARIES} (= {version})"),
        **dict.fromkeys((COMMON, LIBRARIES), (version, "")),
    }


def upgraded(root: Path, held: Collection[str]) -> set[str]:
    """What apt would install in a dist-upgrade to the next kernel and driver, with these packages pinned."""
    repository = root / "repository"
    repository.mkdir()
    env = apt(root, f"deb [trusted=yes] file:{repository} ./\n")
    (repository / "Packages").write_text(
        "\n".join(
            control(name, version, depends, Filename=f"./{name}.deb", Size="1", SHA256="0" * 64)
            for name, (version, depends) in ubuntu(NEW, FOLLOWING, "6.8.0-87.88").items()
        )
    )
    (root / "status").write_text(
        "\n".join(
            control(name, version, depends, Status=f"{'hold' if name in held else 'install'} ok installed")
            for name, (version, depends) in ubuntu(OLD, RELEASE, "6.8.0-51.52").items()
        )
    )
    subprocess.run(["apt-get", "update", "-q"], env=env, check=True, capture_output=True, timeout=60)
    asked = ["apt-get", "--simulate", "--quiet", "dist-upgrade"]
    answer = subprocess.run(asked, env=env, check=True, capture_output=True, text=True, timeout=60).stdout
    # Those of the kernel that runs want the old driver, and are loaded.
    assert set(re.findall(r"^Remv (\S+)", answer, re.MULTILINE)) <= {META.replace("generic", RELEASE)}, answer
    return set(re.findall(r"^Inst (\S+)", answer, re.MULTILINE))


IMAGE, MODULE = f"linux-image-{FOLLOWING}", META.replace("generic", FOLLOWING)


@own_apt
@pytest.mark.parametrize("facts", [SECURE, installed()], ids=["installed by setup", "kept by setup"])
def test_a_kernel_update_brings_its_module_and_the_modules_driver(facts: HostFacts, tmp_path: Path) -> None:
    assert upgraded(tmp_path, marked(plan_of(facts), "hold")) >= {IMAGE, MODULE, META, *DRIVER}


@own_apt
def test_with_the_driver_pinned_the_kernel_would_come_alone(tmp_path: Path) -> None:
    there = upgraded(tmp_path, set(DRIVER))
    assert (IMAGE in there, MODULE in there) == (True, False)
