"""Steps that remove pins first, or build an initramfs last: what is left where one of their commands fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, JournalFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Step
from gpunode.model.report import StepStatus
from gpunode.model.spec import DriverRequest, Spec, ToolkitRequest
from gpunode.planner.plan import make_plan
from tests.apply.machine import Machine
from tests.apply.test_execute import run
from tests.planner.builders import T4, host, packages

CATALOG = load_catalog()
TOOLKIT = dict.fromkeys(CATALOG.toolkit.packages, "1.19.0-1")
KEY = "/usr/share/keyrings/nvidia.gpg"
LIST = FileFacts(
    "/etc/apt/sources.list.d/nvidia-container-toolkit.list",
    f"deb [signed-by={KEY}] https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n",
    "1" * 64,
)
DRIVER = {"nvidia-open": "595.91.07-1", "nvidia-kernel-open-dkms": "595.91.07-1"}
TOOLKIT_1_20 = Spec(only=("toolkit",), toolkit=ToolkitRequest("exact", "1.20.0"))
NO_DRIVER = Spec(only=("driver",), driver=DriverRequest("none"))


def pinned(names: dict[str, str]) -> HostFacts:
    """With the pins, and the packages, of an earlier setup."""
    there = packages(
        {**DRIVER, **TOOLKIT},
        held=list(names),
        sources=(LIST,),
        primaries={KEY: (CATALOG.toolkit.fingerprint,)},
    )
    return host(T4, packages=there, journal=JournalFacts(pinned=frozenset(names), packages=frozenset(names)))


def only(facts: HostFacts, spec: Spec, step: str) -> Step:
    return next(one for one in make_plan(facts, spec, CATALOG).steps if one.id == step)


def stubbed(step: Step, change: Callable[[Run], Run]) -> Step:
    return replace(
        step,
        actions=tuple(change(one) for one in step.actions if isinstance(one, Run)),
        undo=tuple(change(one) for one in step.undo if isinstance(one, Run)),
    )


@pytest.mark.parametrize(
    ("spec", "step", "names"),
    [(TOOLKIT_1_20, "toolkit.install", TOOLKIT), (NO_DRIVER, "driver.remove", DRIVER)],
    ids=["another toolkit", "no driver"],
)
def test_what_was_pinned_is_pinned_again(spec: Spec, step: str, names: dict[str, str], tmp_path: Path) -> None:
    told = tmp_path / "told"

    def stub(one: Run) -> Run:
        if one.argv[0] == "apt-mark":
            return replace(one, argv=("sh", "-c", f'echo "$@" >>{told}', "sh", *one.argv))
        code = 0 if one.description in ("apt-get update", "ask apt what it would change") else 100
        return replace(one, argv=("sh", "-c", f"echo 'E: no route'; exit {code}"), stdin="", detach=False)

    (result,) = run(Machine(tmp_path), stubbed(only(pinned(names), spec, step), stub))
    assert result.status is StepStatus.FAILED, result.error
    assert told.read_text().splitlines() == [
        f"apt-mark {verb} {' '.join(sorted(names))}" for verb in ("unhold", "hold")
    ]


def test_a_pin_of_somebody_elses_that_goes_is_named() -> None:
    lacking = dict(list(TOOLKIT.items())[1:])
    facts = replace(pinned({}), packages=replace(packages({**DRIVER, **lacking}, held=list(lacking))))
    title = only(facts, Spec(only=("toolkit",)), "toolkit.install").title
    assert "; this removes the pin of " in title
    assert title.endswith("not installed by gpunode")


def test_a_full_boot_is_no_rollback_that_failed(tmp_path: Path) -> None:
    words = "update-initramfs: failed for /boot/initrd.img-6.8.0-51-generic: No space left on device"
    step = only(host(T4, packages=packages(DRIVER)), Spec(only=("driver",)), "kernel.nouveau")
    file = tmp_path / "nouveau.conf"

    def stub(one: object) -> object:
        if isinstance(one, PutFile):
            return replace(one, path=str(file))
        assert isinstance(one, Run)
        return replace(one, argv=("sh", "-c", f"echo '{words}' >&2; exit 1"), detach=False)

    full = replace(step, actions=tuple(map(stub, step.actions)), undo=tuple(map(stub, step.undo)))  # type: ignore[arg-type]
    (result,) = run(Machine(tmp_path), full)
    assert (result.status, file.exists()) == (StepStatus.FAILED, False)
    assert "No space left on device" in result.error
    assert full.undo, "the image is built again, where there is room"


@pytest.mark.parametrize(
    "spec",
    [TOOLKIT_1_20, Spec(only=("driver",), driver=DriverRequest("branch", branch=580))],
    ids=["toolkit", "a branch's pin, and that of before"],
)
def test_whatever_asks_a_mirror_goes_through_the_proxy(spec: Spec) -> None:
    facts = pinned({**DRIVER, **TOOLKIT})
    there = {**facts.packages.installed, **packages({"nvidia-driver-pinning-595": "595.91.07-1"}).installed}
    facts = replace(facts, packages=replace(facts.packages, installed=there))
    plan = make_plan(facts, replace(spec, proxy="http://proxy:3128"), CATALOG)
    asking = [
        one
        for step in plan.steps
        for one in (*step.actions, *step.undo)
        if isinstance(one, Run) and one.description.startswith(("apt-get update", "download", "apt-get install"))
    ]
    assert asking
    assert all(("https_proxy", "http://proxy:3128") in one.env for one in asking)
