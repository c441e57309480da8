"""RHEL in a cloud: CodeReady Builder is enabled by the id that the cloud's own lists give it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.facts import OsFacts
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from tests.packages.test_repo_scripts import perform, tool
from tests.planner.builders import T4, host

SUBSCRIPTION = "subscription-manager repos --enable codeready-builder-for-rhel-9-x86_64-rpms\n"
AWS = ("codeready-builder-for-rhel-9-rhui-debug-rpms", "codeready-builder-for-rhel-9-rhui-rpms")
AZURE = "codeready-builder-for-rhel-9-x86_64-{}rpms"
GOOGLE = (
    "rhui-codeready-builder-for-rhel-9-x86_64-rhui-source-rpms",
    "rhui-codeready-builder-for-rhel-9-x86_64-rhui-rpms",
)
RPMS, EXTENDED = AZURE.format("rhui-"), AZURE.format("eus-rhui-")


def enabling(root: Path) -> Run:
    """The plan's own command, of a host whose /etc is below `root`."""
    node = replace(host(T4, os="rocky-9"), os=OsFacts("rhel", "9.4", ("fedora",)))
    step = next(s for s in make_plan(node, Spec(), load_catalog()).steps if s.id == "repo.prerequisites")
    run = next(a for a in step.actions if isinstance(a, Run) and "subscription-manager" in a.argv)
    return replace(run, stdin=run.stdin.replace("=/etc/", f"={root}/etc/"))


def node(root: Path, ids: tuple[str, ...], *, subscribed: bool, manages: str) -> list[str]:
    for path in ("etc/yum.repos.d", "etc/rhsm", "etc/pki/consumer"):
        (root / path).mkdir(parents=True)
    text = "".join(f"[{one}]\nname={one}\nenabled=0\n\n" for one in ids)
    (root / "etc/yum.repos.d/cloud.repo").write_text(f"[rhel-9-baseos-rhui-rpms]\nenabled=1\n{text}")
    (root / "etc/rhsm/rhsm.conf").write_text(f"[rhsm]\nmanage_repos = {manages}\n")
    if subscribed:
        (root / "etc/pki/consumer/cert.pem").touch()
    for name in ("dnf", "subscription-manager"):
        tool(root, name, f'echo "{name} $*" >>{root}/done\n')
    done = perform(enabling(root), root)
    assert (done.returncode, done.stderr) == (0, "")
    return (root / "done").read_text().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("ids", "enabled"),
    [
        (AWS, AWS[1]),
        ((EXTENDED, RPMS), RPMS),
        ((AZURE.format("eus-rhui-debug-"), EXTENDED), EXTENDED),
        (GOOGLE, GOOGLE[1]),
    ],
    ids=["AWS", "Azure", "Azure, extended update support", "Google"],
)
@pytest.mark.parametrize(
    ("subscribed", "manages"), [(False, "1"), (True, "0")], ids=["not registered", "no repositories"]
)
def test_a_clouds_repository_has_the_clouds_name(
    ids: tuple[str, ...], enabled: str, subscribed: bool, manages: str, tmp_path: Path
) -> None:
    done = node(tmp_path, ids, subscribed=subscribed, manages=manages)
    assert done == ["dnf -y install dnf-plugins-core\n", f"dnf config-manager --set-enabled {enabled}\n"]


@pytest.mark.parametrize(
    ("ids", "subscribed"),
    [(AWS, True), ((), True), ((), False), (("codeready-builder-for-rhel-8-rhui-rpms",), False)],
    ids=["subscribed in a cloud", "subscribed", "neither: its own error", "another release's"],
)
def test_a_subscription_is_asked_where_there_is_one(ids: tuple[str, ...], subscribed: bool, tmp_path: Path) -> None:
    assert node(tmp_path, ids, subscribed=subscribed, manages="1") == [SUBSCRIPTION]
