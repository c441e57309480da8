"""What a power cut leaves in dpkg's books, from the listing to the plan, the check and the undo."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, JournalFacts, ToolkitFacts
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.model.past import ABSENT, Past, PastFile
from gpunode.model.plan import Plan
from gpunode.model.spec import Spec, ToolkitRequest
from gpunode.packages.listings import dpkg_residue, parse_dpkg
from gpunode.planner.plan import make_plan
from gpunode.planner.undo.plan import undo_plan
from tests.planner.builders import L4, packages
from tests.planner.builders import host as builders_host

CATALOG = load_catalog()
LISTING = """\
nvidia-open\t580.178.04-1\tamd64\thi
dkms\t3.0.10-8\tall\tri
libcuda1\t580.178.04-1\tamd64\trHR
nvidia-driver-pinning-580\t580-1\tall\tii
nvidia-driver-pinning-580\t580-1\tall\tiiE
nvidia-driver-pinning-595\t595-1\tall\trc
"""


def books(**states: str) -> HostFacts:
    """An apt host with packages in these states (`__` is a dash)."""
    facts = builders_host(L4, os="debian-12", packages=packages({}, manager="apt"))
    found = {name.replace("__", "-"): PackageVersion("3.0-1", state) for name, state in states.items()}
    installed = {**facts.packages.installed, **found}
    return replace(facts, packages=replace(facts.packages, installed=installed))


def words(plan: Plan, step: str) -> str:
    return next(s.title for s in plan.steps if s.id == step)


def test_the_listing_tells_whole_packages_from_half_ones() -> None:
    found = parse_dpkg(LISTING)
    assert {name for name, package in found.items() if not package.configured} == {
        "dkms", "libcuda1", "nvidia-driver-pinning-580",
    }  # fmt: skip
    assert {name for name, package in found.items() if package.half_removed} == {"dkms", "libcuda1"}
    assert dpkg_residue(LISTING) == {"nvidia-driver-pinning-595"}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        pytest.param("ri", "keep dkms, which an interrupted removal left behind", id="selected for removal"),
        pytest.param("rHR", "keep dkms, which an interrupted removal left behind", id="half removed"),
        pytest.param("iF", "finish configuring dkms", id="half configured"),
        pytest.param("iHR", "finish configuring dkms", id="half unpacked"),
        pytest.param("iiE", "finish configuring dkms", id="an empty configuration file"),
    ],
)
def test_setup_repairs_first_whatever_is_half_there(state: str, says: str) -> None:
    plan = make_plan(books(dkms=state), replace(Spec(), trust_keys=("A" * 40,)), CATALOG)
    assert plan.steps[0].id == "packages.repair"
    assert plan.steps[0].title == says
    repair = plan.steps[0].actions[0]
    assert isinstance(repair, Run)
    assert repair.argv == ("sh", "-s", "--", "dkms")


def packages_past(**more: object) -> Past:
    past = Past(
        journal=True, runs=("r1",), packages={"dkms": None, "nvidia-driver-pinning-580": None}, inventory="/inv"
    )
    return replace(past, **more)  # type: ignore[arg-type]


def erased(plan: Plan) -> list[tuple[str, ...]]:
    return [a.argv for s in plan.steps if s.id == "undo.packages" for a in s.actions if isinstance(a, Run)]


def test_undo_removes_what_is_half_there_and_configuration_that_is_left() -> None:
    host = books(dkms="rHR")
    host = replace(host, packages=replace(host.packages, residue=frozenset({"nvidia-driver-pinning-580", "theirs"})))
    plan = undo_plan(host, packages_past(), CATALOG, packages=True)
    assert erased(plan) == [("sh", "-s", "--", "/inv", "dkms", "nvidia-driver-pinning-580")]
    kept = undo_plan(host, packages_past(), CATALOG).kept
    assert "dkms are not removed" in kept[0].text
    assert "pinning" not in kept[0].text, "nobody misses configuration"


def test_an_interrupted_removal_goes_on_though_none_of_its_names_is_there() -> None:
    plan = undo_plan(books(), packages_past(erasing=True), CATALOG, packages=True)
    assert erased(plan) == [("sh", "-s", "--", "/inv")]
    assert words(plan, "undo.packages") == "finish the removal of packages that was interrupted"
    assert erased(undo_plan(books(), packages_past(), CATALOG, packages=True)) == []
    assert erased(undo_plan(books(), packages_past(erasing=True, inventory=""), CATALOG, packages=True)) == []


@pytest.mark.parametrize(
    ("name", "comes_back"),
    [("nvidia-driver-pinning-580", False), ("nvidia-driver-pinning-580.178.04.pref", False), ("theirs.pref", True)],
)
def test_a_pin_that_came_with_setups_own_package_is_not_restored(name: str, comes_back: bool) -> None:
    """580 was set up, then 595, which removed 580's pin; undo takes both back."""
    path = f"/etc/apt/preferences.d/{name}"
    removed = PastFile(path, "driver.install", "5" * 64, ABSENT, "Pin\n", FileFacts(path), "/backup")
    fresh = {"nvidia-driver-pinning-580": None, "nvidia-driver-pinning-580.178.04": None}
    plan = undo_plan(books(), packages_past(packages=fresh, files=(removed,)), CATALOG, packages=True)
    restored = [a.path for s in plan.steps for a in s.actions if isinstance(a, PutFile)]
    assert restored == ([path] if comes_back else [])
    if comes_back:
        assert words(plan, "undo.repositories") == f"restore {path}"


def toolkit_host(journal: JournalFacts) -> HostFacts:
    names = CATALOG.toolkit.packages
    there = packages(dict.fromkeys(names, "1.17.8-1"), held=list(names))
    return builders_host(L4, os="debian-12", packages=there, journal=journal)


def test_another_toolkit_is_not_put_in_place_of_one_that_the_admin_pinned() -> None:
    spec = replace(Spec(), toolkit=ToolkitRequest("exact", "1.20.0"), trust_keys=("A" * 40,), only=("toolkit",))
    with pytest.raises(UnsupportedHost, match=r"are pinned at 1\.17\.8, and not by gpunode") as caught:
        make_plan(toolkit_host(JournalFacts()), spec, CATALOG)
    assert "apt-mark unhold" in caught.value.remedy.text
    own = toolkit_host(JournalFacts(packages=frozenset(CATALOG.toolkit.packages)))
    step = next(s for s in make_plan(own, spec, CATALOG).steps if s.id == "toolkit.install")
    assert step.why == "1.17.8 is installed and pinned"


@pytest.mark.parametrize("held", [False, True], ids=["not pinned", "pinned"])
@pytest.mark.parametrize("lost", ["nvidia-container-runtime", "nvidia-container-runtime-hook"])
def test_a_program_that_somebody_deleted_is_installed_again(lost: str, held: bool) -> None:
    names = CATALOG.toolkit.packages
    there = packages(dict.fromkeys(names, "1.20.0-1"), held=list(names) if held else [])
    whole = ToolkitFacts("1.20.0", "/usr/bin/nvidia-container-runtime", True, "/usr/bin/nvidia-container-runtime-hook")
    broken = replace(whole, hook_path=None) if lost.endswith("hook") else replace(whole, runtime_path=None)
    spec = replace(Spec(), trust_keys=("A" * 40,), only=("toolkit",))
    host = builders_host(L4, os="debian-12", packages=there, toolkit=broken)
    step = next(s for s in make_plan(host, spec, CATALOG).steps if s.id == "toolkit.install")
    assert step.why == f"{lost} is gone, though the packages are installed"
    again, same = (a for a in step.actions[-2:] if isinstance(a, Run))
    assert again.argv[:3] == ("apt-get", "install", "--reinstall")
    assert "nvidia-container-toolkit=1.20.0-1" in again.argv
    assert "apt-mark hold" in same.stdin
    assert any("unhold" in a.argv for a in step.actions if isinstance(a, Run)) is held
    assert not [s for s in make_plan(replace(host, toolkit=whole), spec, CATALOG).steps if s.id == "toolkit.install"]
