"""One source for the driver: which, and what keeps the others out."""

from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.facts import HostFacts, SecurityFacts
from gpunode.model.plan import Plan, PutFile, Run
from gpunode.model.spec import DriverRequest, DriverSource, Spec, parse_mirror
from gpunode.planner.driver.source import policy_files
from gpunode.planner.plan import make_plan
from tests.planner.builders import H100, L4, T4, V100, host

CATALOG = load_catalog()
SECURE = SecurityFacts(secure_boot=True)
LOCAL = Spec(driver_source=DriverSource.LOCAL, mirror="file:///srv/nvidia", trust_keys=("A" * 40,))
POLICY_FILE = policy_files()[0]


def policy(plan: Plan) -> str:
    """The preferences file that the plan writes, "" for none."""
    puts = [a for step in plan.steps for a in step.actions if isinstance(a, PutFile) and a.path == POLICY_FILE]
    return puts[0].text if puts else ""


def commands(plan: Plan) -> list[str]:
    return [" ".join(a.argv) for step in plan.steps for a in step.actions if isinstance(a, Run)]


@pytest.mark.parametrize(
    ("facts", "spec", "origin", "priority"),
    [
        pytest.param(host(L4), Spec(), "developer.download.nvidia.com", 990, id="NVIDIA's repository wins"),
        pytest.param(host(L4, security=SECURE), Spec(), "developer.download.nvidia.com", -1, id="the archive alone"),
        pytest.param(host(L4), Spec(mirror="https://mirror.example/nv"), "mirror.example", 990, id="its mirror wins"),
        pytest.param(host(L4), LOCAL, "", 990, id="files on the host have no origin"),
    ],
)
def test_apt_is_told_to_keep_to_one_source(facts: HostFacts, spec: Spec, origin: str, priority: int) -> None:
    text = policy(make_plan(facts, spec, CATALOG))
    assert f'Pin: origin "{origin}"\nPin-Priority: {priority}\n' in text
    assert "nvidia-container" not in text, "the toolkit comes from elsewhere"


def test_the_policy_is_read_after_the_branchs_own_pin() -> None:
    assert POLICY_FILE > "/etc/apt/preferences.d/nvidia-driver-pinning-595"


def test_the_policy_is_in_place_before_the_driver_is_resolved() -> None:
    step = next(s for s in make_plan(host(L4), Spec(), CATALOG).steps if s.id == "driver.install")
    assert isinstance(step.actions[0], PutFile)


def test_an_rpm_repository_has_the_lower_number() -> None:
    plan = make_plan(host(L4, os="rocky-9"), Spec(), CATALOG)
    texts = [a.text for step in plan.steps for a in step.actions if isinstance(a, PutFile)]
    assert any("baseurl=https://developer.download.nvidia.com" in t and "priority=50" in t for t in texts)
    assert policy(plan) == ""


def test_a_local_repository_serves_driver_and_toolkit_by_one_key() -> None:
    plan = make_plan(host(L4), LOCAL, CATALOG)
    repos = [s for s in plan.steps if s.id.startswith("repo.")]
    assert [s.id for s in repos] == ["repo.local"]
    put = next(a for a in repos[0].actions if isinstance(a, PutFile))
    assert "URIs: file:///srv/nvidia/\n" in put.text
    assert "Signed-By: /etc/apt/keyrings/gpunode-local.asc\n" in put.text
    fetch = next(a for a in repos[0].actions if isinstance(a, Run))
    assert fetch.argv[3:] == ("file:///srv/nvidia/key.asc", "/etc/apt/keyrings/gpunode-local.asc", "A" * 40)
    assert "Pin: version 595*\nPin-Priority: 1001" in policy(plan)
    assert not any("nvidia.com" in c or "github" in c for c in commands(plan))


def test_a_local_repository_must_be_named() -> None:
    with pytest.raises(UsageError, match="needs the directory"):
        make_plan(host(L4), Spec(driver_source=DriverSource.LOCAL), CATALOG)


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("/srv/nvidia", "file:///srv/nvidia"),
        ("file:///srv/nvidia", "file:///srv/nvidia"),
        ("https://m.example/a", "https://m.example/a"),
    ],
)
def test_a_mirror_is_a_url_or_a_directory(typed: str, url: str) -> None:
    assert parse_mirror(typed) == url


@pytest.mark.parametrize(
    "typed", ["http://m.example", "file://host/srv", "srv/nvidia", "https://u:p@m.example", "/srv/a b"]
)
def test_other_mirrors_are_refused_without_their_password(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_mirror(typed)
    assert "u:p" not in caught.value.problem


@pytest.mark.parametrize(
    ("facts", "spec", "says"),
    [
        pytest.param(
            host(L4, os="rocky-9"), Spec(driver_source=DriverSource.DISTRO), "no driver that gpunode", id="no archive"
        ),
        pytest.param(
            host(L4, os="arch"), Spec(driver_source=DriverSource.CUDA), "no repository for Arch", id="no CUDA"
        ),
        pytest.param(host(V100, os="arch"), Spec(), "no current driver", id="an old GPU on a rolling system"),
        pytest.param(
            host(H100, os="arch"), Spec(driver=DriverRequest.parse("580")), "cannot be asked for", id="a branch there"
        ),
        pytest.param(host(T4, os="openeuler"), Spec(), "gets no driver", id="a distribution that is refused"),
    ],
)
def test_what_a_source_does_not_have_is_refused(facts: HostFacts, spec: Spec, says: str) -> None:
    with pytest.raises(UnsupportedHost, match=says) as caught:
        make_plan(facts, spec, CATALOG)
    assert caught.value.remedy.text


def test_suse_gets_the_signed_module_first_and_the_libraries_at_its_version() -> None:
    plan = make_plan(host(L4, os="sles-15", security=SECURE), Spec(), CATALOG)
    assert plan.reboot is None, "nothing to enrol"
    assert "kernel.headers" not in [s.id for s in plan.steps], "nothing to build"
    told = commands(plan)
    module = next(n for n, c in enumerate(told) if "install" in c and "G06-signed-cuda-kmp-" in c)
    rest = next(n for n, c in enumerate(told) if "nvidia-compute-utils-G06=@VERSION@" in c)
    assert module < rest


def test_an_exact_version_on_suse_is_refused_since_the_module_decides() -> None:
    with pytest.raises(UnsupportedHost, match="exact driver version"):
        make_plan(host(L4, os="sles-15"), Spec(driver=DriverRequest.parse("580.95.05")), CATALOG)


def test_azure_linux_is_told_the_exact_version() -> None:
    plan = make_plan(host(L4, os="azure-3"), Spec(), CATALOG)
    assert any("nvidia-open-595.91.07" in c for c in commands(plan))


def test_470_comes_from_the_archive_that_alone_still_has_it() -> None:
    plan = make_plan(host(T4), Spec(driver=DriverRequest.parse("470")), CATALOG)
    assert any("nvidia-headless-no-dkms-470-server" in c for c in commands(plan))
