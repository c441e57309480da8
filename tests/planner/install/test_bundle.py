"""A bundle comes first in a plan, on the host that it is for, and where a plan takes packages at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.facts.wire import file_facts
from gpunode.model.action import PutFile, Run
from gpunode.model.bundle import HOME, Bundle, BundledRepository, Target
from gpunode.model.facts import DriverFacts, HostFacts, OsFacts
from gpunode.model.packages import AptArchive
from gpunode.model.plan import BUNDLE_STEP, BUNDLE_TIDY_STEP
from gpunode.model.spec import Spec
from gpunode.packages.registry import backend
from gpunode.planner.install.bundle import BACK, REMOVE, with_bundle
from gpunode.planner.plan import make_plan
from gpunode.specfile import put_all
from tests.bundles.test_archive import manifest
from tests.checks import hosts as h

APT = backend("apt")
SOURCE, PREFERENCES = APT.bundle_file, f"{APT.preferences}/gpunode-bundle.pref"
WANTED = put_all(Spec(), {"mirror": f"{HOME}/vendor", "driver_source": "cuda", "driver": "580"})
ARCHIVE = BundledRepository("archive", "archive/0", "bookworm", ("main", "contrib"))
BUNDLE = Bundle("/root/gpu.bundle", "a" * 64, 5, manifest(repositories=(ARCHIVE,)), None)
HOST = replace(
    h.READY,
    packages=replace(
        h.READY.packages, archives=(AptArchive("http://deb", "bookworm", ("main",), "/usr/share/keyrings/debian.gpg"),)
    ),
)


def planned(host: HostFacts = HOST, spec: Spec = WANTED, bundle: Bundle = BUNDLE) -> list[str]:
    plan = with_bundle(make_plan(host, spec, load_catalog()), host, bundle)
    return [step.id for step in plan.steps]


def texts(host: HostFacts = HOST) -> dict[str, str]:
    step = with_bundle(make_plan(host, WANTED, load_catalog()), host, BUNDLE).steps[0]
    return {action.path: action.text for action in step.actions if isinstance(action, PutFile)}


def test_it_comes_before_everything_that_takes_packages() -> None:
    steps = planned()
    assert steps[0] == BUNDLE_STEP
    assert "driver.install" in steps


def test_its_archive_is_signed_by_the_key_that_the_host_itself_names() -> None:
    source = texts()[SOURCE]
    assert f"URIs: file:{HOME}/archive/0/\nSuites: bookworm\nComponents: main contrib\n" in source
    assert "Signed-By: /usr/share/keyrings/debian.gpg\n" in source
    assert "Trusted" not in source
    assert "Signed-By" not in texts(h.READY)[SOURCE], "apt's own trusted keys then"
    assert "Pin-Priority: 600" in texts()[PREFERENCES]


def test_a_key_of_another_repository_of_the_host_signs_no_archive() -> None:
    debian = AptArchive("http://deb", "bookworm", ("main",), "/usr/share/keyrings/debian.gpg")
    others = (
        AptArchive("https://docker", "bookworm", ("stable",), "/etc/apt/keyrings/docker.asc"),
        AptArchive("https://nvidia", "/", (), "/usr/share/keyrings/nvidia.gpg"),
        AptArchive("https://ppa", "trixie", ("main",), "/usr/share/keyrings/ppa.gpg"),
    )
    for archives, said in (((*others, debian), True), (others, False)):
        source = texts(replace(h.READY, packages=replace(h.READY.packages, archives=archives)))[SOURCE]
        assert ("Signed-By: /usr/share/keyrings/debian.gpg\n" in source, "Signed-By" in source) == (said, said)


def test_vendors_packages_come_from_it_by_their_pinned_key() -> None:
    plan = with_bundle(make_plan(HOST, WANTED, load_catalog()), HOST, BUNDLE)
    cuda = next(step for step in plan.steps if step.id == "repo.cuda")
    key = next(action for action in cuda.actions if isinstance(action, Run))
    assert f"file://{HOME}/vendor/compute/cuda/repos/debian12/x86_64/3bf863cc.pub" in key.argv
    assert "EB693B3035CD5710E231E123A4B469963BF863CC" in key.argv


def test_where_no_package_changes_nothing_is_put_there() -> None:
    spec = put_all(Spec(), {"only": "runtime"})
    assert BUNDLE_STEP not in planned(spec=spec)


def test_the_same_bundle_is_not_put_there_twice() -> None:
    written = tuple(file_facts(path, text) for path, text in texts().items())
    host = replace(HOST, packages=replace(HOST.packages, sources=(*HOST.packages.sources, *written)))
    assert BUNDLE_STEP not in planned(host)
    other = replace(BUNDLE, sha256="b" * 64)
    assert planned(host, bundle=other)[0] == BUNDLE_STEP


def test_the_bundle_before_it_is_kept_until_the_driver_is_there() -> None:
    """What fails until then is rolled back, and apt's sources name the directory again."""
    first = with_bundle(make_plan(HOST, WANTED, load_catalog()), HOST, BUNDLE)
    written = tuple(file_facts(path, text) for path, text in texts().items())
    host = replace(HOST, packages=replace(HOST.packages, sources=(*HOST.packages.sources, *written)))
    later = with_bundle(make_plan(host, WANTED, load_catalog()), host, replace(BUNDLE, sha256="b" * 64))
    assert [step.id for step in later.steps].index(BUNDLE_TIDY_STEP) == len(later.steps) - 1
    assert BUNDLE_TIDY_STEP not in [step.id for step in first.steps]
    kept = f"{HOME}.old"
    assert not [a for a in later.steps[0].actions if isinstance(a, Run) and kept in a.argv]
    undone = [run.argv[2] for plan in (first, later) for run in plan.steps[0].undo if isinstance(run, Run)]
    assert undone == [REMOVE, BACK]


@pytest.mark.parametrize(
    ("os", "said"),
    [
        (OsFacts("debian", "13"), "the bundle is for debian 12 on x86_64, and this is debian 13 on x86_64"),
        (OsFacts("ubuntu", "12"), "this is ubuntu 12 on x86_64"),
        (OsFacts("debian", "12", machine="aarch64"), "this is debian 12 on aarch64"),
    ],
)
def test_another_host_is_refused_with_both_names(os: OsFacts, said: str) -> None:
    plan = make_plan(HOST, WANTED, load_catalog())
    with pytest.raises(UnsupportedHost, match=said):
        with_bundle(plan, replace(HOST, os=os), BUNDLE)


def test_without_a_bundle_the_plan_is_as_it_was() -> None:
    plan = make_plan(HOST, WANTED, load_catalog())
    assert with_bundle(plan, HOST, None) is plan


def test_a_target_reads_as_it_is_typed() -> None:
    assert str(Target("debian", "12", "x86_64", "595")) == "debian-12/595"


RPM_ARCHIVE = BundledRepository("archive", "archive/0", "repodata", ())
ROCKY = replace(BUNDLE, manifest=manifest(target=Target("rocky", "9", "x86_64", "580"), repositories=(RPM_ARCHIVE,)))
EL9 = replace(
    HOST,
    os=OsFacts("rocky", "9.6", pretty_name="Rocky Linux 9.6"),
    driver=DriverFacts(),
    packages=replace(h.READY.packages, manager="dnf", installed={}, sources=(), held=frozenset()),
)


def test_a_host_of_rpms_gets_its_archives_entry_and_asks_nothing_of_a_network() -> None:
    plan = with_bundle(make_plan(EL9, WANTED, load_catalog()), EL9, ROCKY)
    put, keys = plan.steps[0].actions[1:3]
    assert isinstance(put, PutFile)
    assert put.path == "/etc/yum.repos.d/gpunode-bundle.repo"
    assert isinstance(keys, Run)
    assert keys.description.startswith("rpm --import the key files that this host's own")
    assert "repo.prerequisites" not in [step.id for step in plan.steps], "EPEL is in the bundle"
    installs = [a for s in plan.steps for a in s.actions if isinstance(a, Run) and "nvidia-open" in a.argv]
    assert installs
    assert all("--disablerepo=*" in f"{run.argv} {run.stdin}" for run in installs)


@pytest.mark.parametrize("version", ["9", "9.6", "9.10"])
def test_a_bundle_for_a_major_release_is_for_its_minor_ones(version: str) -> None:
    host = replace(EL9, os=OsFacts("rocky", version))
    assert with_bundle(make_plan(host, WANTED, load_catalog()), host, ROCKY).steps[0].id == BUNDLE_STEP


def test_packages_of_another_kind_than_the_managers_are_refused() -> None:
    lying = replace(BUNDLE, manifest=manifest(repositories=(RPM_ARCHIVE,)))
    with pytest.raises(UnsupportedHost, match="the bundle has rpm packages"):
        with_bundle(make_plan(HOST, WANTED, load_catalog()), HOST, lying)
