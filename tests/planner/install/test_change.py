"""Upgrade, downgrade, another flavour, another owner, and away with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.driver import ModuleFlavour
from gpunode.model.facts import DriverFacts, HostFacts, JournalFacts, KernelTree
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import PARTS, DriverRequest, DriverSource, Flavour, Spec, ToolkitRequest
from gpunode.planner.driver.source import policy_files
from gpunode.planner.kernel.initramfs import DRACUT_FILE
from gpunode.planner.kernel.setup import LOAD_FILE, NOUVEAU_FILE
from gpunode.planner.mig import LAYOUT, SCRIPT, UNIT, UNIT_PATH
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, gpus, host, kernel, packages

CATALOG = load_catalog()
NAMES = ("nvidia-open", "nvidia-kernel-open-dkms", "libcuda1")
ARCHIVES = ("535.261.03",)  # Debian's own, whose revisions say so
POLICY_FILE = policy_files()[0]


def driven(
    version: str = "595.91.07", *names: str, flavour: ModuleFlavour = "open", os: str = "debian-12", **more: object
) -> HostFacts:
    """A host whose driver is installed, loaded and held."""
    there = dict.fromkeys(names or NAMES, f"{version}-1{'~deb12u1' if version in ARCHIVES else ''}")
    facts = host(
        os=os,
        pci=gpus(L4, driver="nvidia"),
        driver=DriverFacts(version, flavour, version, flavour),
        packages=packages(
            {**there, "nvidia-container-toolkit": "1.20.0-1"},
            held=list(there),
            manager="dnf" if "rocky" in os else "apt",
        ),
        kernel=kernel("nvidia", "nvidia_uvm", blacklisted=frozenset({"nouveau", "nova_core"})),
    )
    return replace(facts, **more)  # type: ignore[arg-type]


def asked(driver: str, flavour: str = "auto") -> Spec:
    return Spec(driver=DriverRequest.parse(driver), flavour=Flavour(flavour), only=("driver",))


def told(plan: Plan, step: str) -> list[str]:
    return [" ".join(a.argv) for s in plan.steps if s.id == step for a in s.actions if isinstance(a, Run)]


@pytest.mark.parametrize(
    ("facts", "spec", "words"),
    [
        pytest.param(
            driven(), asked("580"), ("apt-mark unhold", "nvidia-driver-pinning-580", "--allow-downgrades"), id="down"
        ),
        pytest.param(driven("580.178.04"), asked("595"), ("apt-mark unhold", "nvidia-driver-pinning-595"), id="up"),
        pytest.param(driven(), asked("595", "proprietary"), ("cuda-drivers",), id="the other flavour"),
        pytest.param(
            driven(os="rocky-9"),
            asked("580"),
            ("nvidia-driver:580-open", "--allowerasing nvidia-open-580.*"),
            id="down by dnf",
        ),
        pytest.param(
            driven(os="rocky-9"),
            asked("595", "proprietary"),
            ("nvidia-driver:595-dkms", "cuda-drivers-595.*"),
            id="flavour by dnf",
        ),
        pytest.param(driven(), asked("580.178.04"), ("nvidia-driver-pinning-580.178.04",), id="an exact version"),
    ],
)
def test_another_driver_is_a_plan_like_any_other(facts: HostFacts, spec: Spec, words: tuple[str, ...]) -> None:
    commands = "\n".join(told(make_plan(facts, spec, CATALOG), "driver.install"))
    assert [word for word in words if word not in commands] == []


@pytest.mark.parametrize(
    ("facts", "back"),
    [
        pytest.param(
            driven("595.91.07", *NAMES, "nvidia-driver-pinning-595"),
            (
                "apt-get install nvidia-driver-pinning-595",
                "apt-get purge nvidia-driver-pinning-580",
                "apt-mark hold libcuda1",
            ),
            id="apt",
        ),
        pytest.param(
            driven(os="rocky-9"),
            ("dnf -y module enable nvidia-driver:595-open", "dnf versionlock add libcuda1"),
            id="streams",
        ),
        pytest.param(
            driven(os="rocky-10"),
            ("dnf -y versionlock delete *nvidia*580*", "dnf versionlock add libcuda1"),
            id="versionlock",
        ),
    ],
)
def test_a_change_that_fails_leaves_the_old_driver_chosen_and_held(facts: HostFacts, back: tuple[str, ...]) -> None:
    spec = replace(asked("580"), trust_keys=("A" * 40,))
    step = next(s for s in make_plan(facts, spec, CATALOG).steps if s.id == "driver.install")
    undo = [a.description or " ".join(a.argv) for a in step.undo if isinstance(a, Run)]
    assert [words for words in back if not any(run.startswith(words) for run in undo)] == []
    assert undo[-1].startswith(back[-1]), "held last, at what is installed then"


def test_a_first_driver_that_fails_takes_its_pin_along() -> None:
    facts = host(L4, os="debian-12", packages=packages({}))
    plan = make_plan(facts, replace(asked("580"), trust_keys=("A" * 40,)), CATALOG)
    step = next(s for s in plan.steps if s.id == "driver.install")
    undo = [a.description for a in step.undo if isinstance(a, Run)]
    assert undo == ["apt-get purge nvidia-driver-pinning-580", "apt-get remove nvidia-open"]


STREAM = "/etc/dnf/modules.d/nvidia-driver.module"
ENABLED = "[nvidia-driver]\nname=nvidia-driver\nstream=590-open\nprofiles=\nstate=enabled\n"


@pytest.mark.parametrize(
    ("installed", "text", "enabled"),
    [
        (False, None, None),
        (False, ENABLED, "590-open"),
        (False, ENABLED.replace("=enabled", "=disabled"), None),
        (False, ENABLED.replace("590-open", "590;id"), None),
        (True, ENABLED, "590-open"),
        (True, None, None),
    ],
    ids=["none", "one", "a disabled one", "no name", "of a driver", "a driver without one"],
)
def test_a_driver_that_fails_leaves_the_module_as_it_was(
    installed: bool, text: str | None, enabled: str | None
) -> None:
    facts = driven(os="rocky-9") if installed else host(L4, os="rocky-9", packages=packages({}))
    facts = replace(facts, files={STREAM: FileFacts(STREAM, text)})
    step = next(s for s in make_plan(facts, asked("580"), CATALOG).steps if s.id == "driver.install")
    undo = [" ".join(a.argv) for a in step.undo if isinstance(a, Run) and "module" in a.argv]
    assert [words.partition(" module ")[2] for words in undo] == [
        "reset nvidia-driver",
        *([f"enable nvidia-driver:{enabled}"] if enabled else []),
    ]


def test_a_pin_comes_back_where_its_file_was_removed() -> None:
    """580, then 595, which removes 580's pin, then 580 again: dpkg takes the missing file for the admin's wish."""
    step = next(s for s in make_plan(driven(), asked("580"), CATALOG).steps if s.id == "driver.install")
    (pin,) = [a for a in step.actions if isinstance(a, Run) and "nvidia-driver-pinning-580" in a.argv]
    assert "Dpkg::Options::=--force-confmiss" in pin.argv


def test_the_old_branchs_pin_goes_although_apt_would_leave_it() -> None:
    pins = tuple(FileFacts(f"/etc/apt/preferences.d/nvidia-driver-pinning-{b}", "Pin", "4" * 64) for b in (580, 595))
    facts = driven()
    facts = replace(facts, packages=replace(facts.packages, sources=pins))
    step = next(s for s in make_plan(facts, asked("580"), CATALOG).steps if s.id == "driver.install")
    assert [a.path for a in step.actions if isinstance(a, RemoveFile)] == [pins[1].path]
    gone = make_plan(facts, asked("none"), CATALOG).steps[0]
    assert {a.path for a in gone.actions if isinstance(a, RemoveFile)} == {pin.path for pin in pins}


def test_another_source_takes_the_first_ones_set_away_before_it_brings_its_own() -> None:
    spec = replace(asked("535"), driver_source=DriverSource.DISTRO)
    plan = make_plan(driven(), spec, CATALOG)
    ids = [s.id for s in plan.steps]
    assert ids.index("driver.replace") < ids.index("driver.install")
    assert told(plan, "driver.replace")[1].startswith("apt-mark unhold")
    assert not any("unhold" in c or "--allow-downgrades" in c for c in told(plan, "driver.install"))
    back = make_plan(
        driven("535.261.03", "nvidia-kernel-dkms", "libcuda1", flavour="proprietary"), asked("595"), CATALOG
    )
    assert "driver.replace" in [s.id for s in back.steps]


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        (asked("580"), "driver.install"),
        (replace(asked("535"), driver_source=DriverSource.DISTRO), "driver.replace"),
        (asked("none"), "driver.remove"),
    ],
    ids=["another branch", "another source", "none"],
)
def test_a_pin_that_is_not_gpunodes_is_not_removed_silently(spec: Spec, step: str) -> None:
    def title(facts: HostFacts) -> str:
        return next(s.title for s in make_plan(facts, spec, CATALOG).steps if s.id == step)

    said = "; this removes the pin of libcuda1, nvidia-kernel-open-dkms, nvidia-open, not installed by gpunode"
    assert title(driven()).endswith(said)
    assert "removes the pin" not in title(driven(journal=JournalFacts(packages=frozenset(NAMES))))


def test_an_empty_policy_of_a_kept_driver_is_written_anew() -> None:
    def planned(text: str) -> list[Step]:
        sources = (FileFacts(POLICY_FILE, text, "3" * 64),)
        facts = driven(packages=replace(driven().packages, sources=sources))
        return [s for s in make_plan(facts, asked("auto"), CATALOG).steps if s.id == "driver.policy"]

    (step,) = planned("")
    (put,) = step.actions
    assert isinstance(put, PutFile)
    assert (put.path, "Pin-Priority: 990" in put.text) == (POLICY_FILE, True)
    assert planned("Package: x\nPin-Priority: 1\n") == []


def test_what_is_there_and_asked_for_stays() -> None:
    for spec in (asked("auto"), asked("595"), asked("595.91.07"), asked("595", "open")):
        assert "driver.install" not in [s.id for s in make_plan(driven(), spec, CATALOG).steps]


def test_a_driver_newer_than_the_catalog_is_kept_and_said_to_be_unknown() -> None:
    plan = make_plan(driven("640.10.01"), asked("auto"), CATALOG)
    assert "driver.install" not in [s.id for s in plan.steps]
    assert plan.driver
    assert "its end is not known" in " ".join(plan.driver.reasons)


def test_none_removes_the_whole_set_and_gpunodes_own_files_and_keeps_the_repositories() -> None:
    own = {path: FileFacts(path, "x", "2" * 64) for path in (LOAD_FILE, NOUVEAU_FILE, DRACUT_FILE)}
    facts = driven(files=own)
    there = {**facts.packages.installed, "nvidia-driver-pinning-595": PackageVersion("595-1")}
    sources = (FileFacts(POLICY_FILE, "Package: nvidia", "3" * 64),)
    facts = replace(facts, packages=replace(facts.packages, installed=there, sources=sources))
    plan = make_plan(facts, asked("none"), CATALOG)
    assert [s.id for s in plan.steps] == ["driver.remove"]
    commands = told(plan, "driver.remove")
    assert commands[1].startswith("apt-mark unhold libcuda1 nvidia-kernel-open-dkms nvidia-open")
    assert "nvidia-driver-pinning-595" in commands[2]
    assert "nvidia-container-toolkit" not in commands[2]
    removed = [a.path for a in plan.steps[0].actions if isinstance(a, RemoveFile)]
    assert removed == [LOAD_FILE, NOUVEAU_FILE, DRACUT_FILE, POLICY_FILE]
    assert "update-initramfs -u -k all" in commands
    assert plan.steps[0].for_undo.initramfs
    assert any("package repositories (gpunode undo" in k.text for k in plan.kept)
    assert plan.reboot == "driver 595.91.07 is loaded, and leaves the kernel with a reboot"


def test_none_removes_no_file_that_somebody_switched_off() -> None:
    """With a link to /dev/null, which is what a removal would follow."""
    off = FileFacts(LOAD_FILE, unread="not a regular file")
    plan = make_plan(
        driven(files={LOAD_FILE: off, NOUVEAU_FILE: FileFacts(NOUVEAU_FILE, "x", "2" * 64)}), asked("none"), CATALOG
    )
    assert [a.path for a in plan.steps[0].actions if isinstance(a, RemoveFile)] == [NOUVEAU_FILE]


def test_none_leaves_toolkit_and_engines_alone_unless_they_are_named() -> None:
    there = driven()
    whole = replace(asked("none"), only=PARTS)
    plan = make_plan(there, whole, CATALOG)
    assert [s.id for s in plan.steps] == ["driver.remove"]
    assert any("container toolkit and engines: without a driver" in kept.text for kept in plan.kept)
    named = make_plan(there, replace(whole, toolkit=ToolkitRequest("exact", "1.20.0")), CATALOG)
    assert "toolkit.install" in [s.id for s in named.steps]
    assert "toolkit.install" in [s.id for s in make_plan(foreign(), whole, CATALOG).steps], "that driver stays"


def test_none_takes_the_mig_unit_along() -> None:
    own = {path: FileFacts(path, "x", "2" * 64) for path in (UNIT_PATH, SCRIPT, LAYOUT)}
    plan = make_plan(driven(files=own), asked("none"), CATALOG)
    assert f"systemctl disable {UNIT}" in told(plan, "driver.remove")
    assert {a.path for a in plan.steps[0].actions if isinstance(a, RemoveFile)} == set(own)


def test_none_on_a_host_without_a_driver_changes_nothing() -> None:
    plan = make_plan(host(L4), asked("none"), CATALOG)
    assert plan.empty
    assert make_plan(host(L4, os="gentoo"), asked("none"), CATALOG).empty


def test_none_below_running_work_is_refused() -> None:
    busy = driven(driver=DriverFacts("595.91.07", "open", "595.91.07", "open", busy=("4242 python3",)))
    with pytest.raises(UnsupportedHost, match="in use by 4242 python3"):
        make_plan(busy, asked("none"), CATALOG)


def foreign(beside: Mapping[str, str] = MappingProxyType({}), **facts: object) -> HostFacts:
    """A driver that no package brought. `beside`: packages of another one, with their versions."""
    tree = KernelTree("6.8.0-51-generic", True, True, "/lib/modules/6.8.0-51-generic/extra/nvidia.ko")
    loaded = DriverFacts("580.95.05", "open", "580.95.05", "open")
    return host(
        pci=gpus(L4, driver="nvidia"),
        driver=replace(loaded, **facts),  # type: ignore[arg-type]
        packages=packages(beside),
        kernel=kernel("nvidia", "nvidia_uvm", trees=(tree,)),
    )


@pytest.mark.parametrize(
    ("facts", "says", "proceed"),
    [
        pytest.param(foreign(runfile=True), "a .run file", "run nvidia-uninstall", id="a .run installer"),
        pytest.param(
            foreign(runfile=True, beside={"nvidia-open": "595.91.07-1"}),
            "the module is 580.95.05 beside nvidia-open 595.91.07",
            "run nvidia-uninstall",
            id="a .run installer beside packages",
        ),
        pytest.param(foreign(image="/etc/dgx-release"), "DGX OS", "own tools", id="DGX OS"),
        pytest.param(foreign(image="/opt/azurehpc"), "an Azure HPC image", "own tools", id="a cloud image"),
        pytest.param(foreign(), "is of unknown origin", "modinfo -F filename nvidia", id="nobody knows who"),
    ],
)
def test_somebody_elses_good_driver_is_left_alone_with_the_words_to_proceed(
    facts: HostFacts, says: str, proceed: str
) -> None:
    plan = make_plan(facts, asked("auto"), CATALOG)
    assert plan.steps == ()
    assert says in plan.kept[0].text
    assert proceed in plan.kept[0].text
    with pytest.raises(UnsupportedHost, match=r"580|image|run file") as caught:
        make_plan(facts, asked("595"), CATALOG)
    assert proceed in caught.value.remedy.text
    assert "--only toolkit,runtime" in caught.value.remedy.text
    assert make_plan(facts, asked("none"), CATALOG).steps == ()


def test_an_uninstaller_left_behind_does_not_make_the_packages_driver_somebody_elses() -> None:
    facts = foreign(runfile=True, beside={"nvidia-open": "580.95.05-1"})
    assert "driver.install" in [step.id for step in make_plan(facts, asked("595"), CATALOG).steps]


@pytest.mark.parametrize("source", [DriverSource.DISTRO, DriverSource.CUDA, DriverSource.LOCAL])
def test_a_driver_without_a_package_is_of_no_source_that_can_be_asked_for(source: DriverSource) -> None:
    with pytest.raises(UnsupportedHost, match=r"from a \.run file"):
        make_plan(foreign(runfile=True), replace(asked("auto"), driver_source=source), CATALOG)


def test_a_driver_container_is_the_operators() -> None:
    with pytest.raises(UnsupportedHost, match="Operator is in charge of driver, toolkit and engines") as caught:
        make_plan(foreign(container=True), asked("auto"), CATALOG)
    assert "driver.enabled=false" in caught.value.remedy.text
