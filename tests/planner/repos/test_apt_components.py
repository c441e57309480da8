"""Debian's contrib and non-free are enabled from the mirror that the host uses, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.packages import AptArchive
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverSource, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import L4, host, packages

CATALOG = load_catalog()
MAIN = AptArchive(
    "http://mirror.example/debian", "bookworm", ("main",), "/usr/share/keyrings/debian-archive-keyring.gpg"
)
WHOLE = AptArchive("http://mirror.example/debian", "bookworm", ("main", "contrib", "non-free", "non-free-firmware"))
DISTRO = Spec(driver_source=DriverSource.DISTRO)
FILE = "/etc/apt/sources.list.d/gpunode-components.sources"


def written(spec: Spec, *archives: AptArchive, os: str = "debian-12") -> str:
    """The list that the plan writes, "" for none."""
    plan: Plan = make_plan(host(L4, os=os, packages=packages({}, archives=archives)), spec, CATALOG)
    puts = [a for s in plan.steps for a in s.actions if isinstance(a, PutFile) and a.path == FILE]
    return puts[0].text if puts else ""


def test_what_is_missing_comes_from_the_same_mirror_under_the_same_key() -> None:
    text = written(DISTRO, MAIN)
    assert (
        "URIs: http://mirror.example/debian\nSuites: bookworm\nComponents: contrib non-free non-free-firmware\n" in text
    )
    assert f"Signed-By: {MAIN.signed_by}\n" in text


def test_what_apt_wants_to_be_the_same_is_the_same() -> None:
    """snapshot.debian.org asks for check-valid-until=no; apt stops at "Conflicting values set for option"."""
    text = written(Spec(), replace(MAIN, options=(("check-valid-until", "no"), ("trusted", "yes"))))
    assert f"Signed-By: {MAIN.signed_by}\ncheck-valid-until: no\ntrusted: yes\n" in text


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (replace(MAIN, signed_by=None, inline_key=True), "a key in the entry itself"),
        (replace(MAIN, options=(("snapshot", "a b\nX: y"),)), "its snapshot"),
    ],
    ids=["its key", "a value that is no word"],
)
def test_what_cannot_be_repeated_is_left_to_a_person(entry: AptArchive, why: str) -> None:
    with pytest.raises(UnsupportedHost, match=r"^contrib of http://mirror\.example/debian bookworm cannot") as raised:
        written(Spec(), entry)
    assert why in raised.value.evidence
    assert "add contrib to the Components" in raised.value.remedy.text


def test_lists_that_apt_cannot_read_are_a_step_that_failed() -> None:
    plan = make_plan(host(L4, os="debian-12", packages=packages({}, archives=(MAIN,))), Spec(), CATALOG)
    (step,) = [step for step in plan.steps if step.id == "repo.components"]
    told = [(action.argv[:2], action.ok_codes) for action in step.actions if isinstance(action, Run)]
    assert told[0] == (("apt-get", "indextargets"), (0,))
    assert told[1][0] == ("sh", "-s"), "what is fetched comes after"


def test_nvidias_packages_need_contrib_alone() -> None:
    assert "Components: contrib\n" in written(Spec(), MAIN)


@pytest.mark.parametrize(
    "archives",
    [
        pytest.param((WHOLE,), id="all there"),
        pytest.param((), id="a recording that says nothing of it"),
        pytest.param((AptArchive("https://packages.example/", "jammy", ("main",)),), id="somebody else's main"),
        pytest.param((AptArchive("https://***@mirror.example/debian", "bookworm", ("main",)),), id="a masked password"),
        pytest.param((MAIN, AptArchive(MAIN.uri, "bookworm", WHOLE.components[1:])), id="added before"),
    ],
)
def test_else_nothing_is_written(archives: tuple[AptArchive, ...]) -> None:
    assert written(DISTRO, *archives) == ""


def test_ubuntu_needs_none() -> None:
    assert written(Spec(), AptArchive("http://archive.ubuntu.com/ubuntu", "noble", ("main",)), os="ubuntu-24.04") == ""
