"""One source for the driver: which, and what keeps the others out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import DriverFacts, HostFacts, OsFacts, SecurityFacts
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, DriverSource, KubernetesSpec, Spec, parse_mirror
from gpunode.planner.driver.source import policy_files
from gpunode.planner.install.driver import driver_choice
from gpunode.planner.plan import make_plan
from gpunode.planner.site import survey
from tests.planner.builders import B200, H100, L4, T4, V100, gpus, host, kernel, switches

CATALOG = load_catalog()
SECURE = SecurityFacts(secure_boot=True)
LOCAL = Spec(driver_source=DriverSource.LOCAL, mirror="file:///srv/nvidia", trust_keys=("A" * 40,))
POLICY_FILE = policy_files()[0]
GB200 = "2941"
HGX_B200 = host(*[B200] * 8, driver=DriverFacts(switch_management=("0000:05:00.0",)))


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
        pytest.param(host(L4), Spec(mirror="https://nexus:8443/nv"), "nexus", 990, id="one on a port"),
        pytest.param(host(L4), Spec(mirror="https://[fd00::7]:8443/nv"), "fd00::7", 990, id="one without a name"),
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
    module = next(n for n, c in enumerate(told) if "install" in c and "G07-signed-cuda-kmp-" in c)
    rest = next(
        n for n, c in enumerate(told) if "nvidia-compute-utils-G07=@VERSION@ nvidia-persistenced=@VERSION@" in c
    )
    assert module < rest


@pytest.mark.parametrize("flavour", ["default", "azure"])
def test_the_proprietary_module_on_suse_is_that_of_the_running_kernel(flavour: str) -> None:
    """kernel-azure has no module of the -default package; zypper names a package that the repository lacks."""
    release = f"6.4.0-150600.8.48-{flavour}"
    plan = make_plan(host(V100, os="sles-15", kernel=kernel(headers=False, release=release)), Spec(), CATALOG)
    assert plan.driver is not None
    assert plan.driver.packages == (f"nvidia-driver-G06-kmp-{flavour}", "nvidia-compute-utils-G06")
    headers = next(step.title for step in plan.steps if step.id == "kernel.headers")
    assert f"kernel-{flavour}-devel" in headers


def test_the_branch_that_a_newer_service_pack_has_can_be_asked_for() -> None:
    """SLES 16.1's G07 is of 610: the refusal of 595 there says so, and what it names must be offered."""
    os = OsFacts("sles", "16.1", ("suse",), "", "SUSE Linux Enterprise Server 16.1")
    facts = replace(host(L4, os="sles-15"), os=os)
    assert make_plan(facts, Spec(), CATALOG).driver == make_plan(facts, _branch(595), CATALOG).driver
    plan = make_plan(facts, _branch(610), CATALOG)
    assert plan.driver
    assert (plan.driver.branch, plan.driver.packages[0].split("-kmp-")[0]) == (
        610,
        "nvidia-open-driver-G07-signed-cuda",
    )


def _branch(number: int) -> Spec:
    return Spec(driver=DriverRequest.parse(str(number)))


def test_a_tray_on_suse_gets_imex_at_the_modules_version() -> None:
    plan = make_plan(host(*[GB200] * 4, os="sles-15"), Spec(), CATALOG)
    assert plan.driver
    assert "nvidia-imex" in plan.driver.packages
    assert any("nvidia-imex=@VERSION@" in command for command in commands(plan))


def test_an_exact_version_on_suse_is_refused_since_the_module_decides() -> None:
    with pytest.raises(UnsupportedHost, match="exact driver version"):
        make_plan(host(L4, os="sles-15"), Spec(driver=DriverRequest.parse("580.95.05")), CATALOG)


@pytest.mark.parametrize(
    ("os", "driver"),
    [("sles-15", "auto"), ("azure-3", "auto"), ("rocky-9", "595.71.05"), ("ubuntu-24.04", "595.71.05")],
    ids=["after the module's version", "always named", "asked for", "pinned by a package"],
)
def test_what_manages_nvlink5_is_not_asked_for_at_the_drivers_version(os: str, driver: str) -> None:
    hgx = host(*[B200] * 8, os=os, driver=HGX_B200.driver)
    named = commands(make_plan(hgx, Spec(driver=DriverRequest.parse(driver)), CATALOG))
    words = {word for command in named for word in command.split()}
    assert "nvlsm" in words
    assert [w for w in words if re.match(r"(nvlsm|libibumad|infiniband-diags)(=|-\d)", w)] == []


@pytest.mark.parametrize(
    "facts", [HGX_B200, replace(HGX_B200, security=SECURE)], ids=["asked for", "taken for its signed modules"]
)
def test_an_archive_without_nvlsm_is_refused_where_nvlink5_switches_are(facts: HostFacts) -> None:
    wanted = DriverSource.AUTO if facts.security.secure_boot else DriverSource.DISTRO
    with pytest.raises(UnsupportedHost, match="own archive has no nvlsm, which the NVSwitches here need") as refused:
        make_plan(facts, Spec(driver_source=wanted), CATALOG)
    assert "--driver-source cuda" in refused.value.remedy.text
    taken = make_plan(facts, Spec(driver_source=DriverSource.CUDA), CATALOG)
    assert taken.driver
    assert "nvlsm" in taken.driver.packages


def test_an_nvlsm_that_is_there_already_serves_a_driver_of_the_archive() -> None:
    facts = replace(HGX_B200, packages=PackageFacts("apt", {"nvlsm": PackageVersion("2025.10.9-1")}))
    plan = make_plan(facts, Spec(driver_source=DriverSource.DISTRO), CATALOG)
    assert plan.driver
    assert "nvidia-fabricmanager-595" in plan.driver.packages


@pytest.mark.parametrize("os", ["ubuntu-22.04", "ubuntu-24.04", "ubuntu-26.04"])
def test_the_archives_imex_has_the_branch_in_its_name(os: str) -> None:
    plan = make_plan(host(*[GB200] * 4, os=os), Spec(driver_source=DriverSource.DISTRO), CATALOG)
    assert any("nvidia-imex-595" in command.split() for command in commands(plan))


def test_an_archive_without_imex_is_refused_on_a_tray_but_where_computedomains_bring_it() -> None:
    tray = host(*[GB200] * 4, os="ubuntu-20.04")
    with pytest.raises(UnsupportedHost, match="own archive has no nvidia-imex") as refused:
        make_plan(tray, Spec(), CATALOG)
    assert "NVIDIA has no repository for Ubuntu 20.04" in refused.value.remedy.text
    site = survey(tray, Spec(kubernetes=KubernetesSpec("dra")), CATALOG)
    assert "nvidia-utils-570-server" in driver_choice(site).packages


def test_an_archive_without_a_fabric_manager_is_refused_where_nvswitches_are() -> None:
    hgx = host(H100, os="debian-13", pci=(*gpus(H100), *switches(4)))
    with pytest.raises(UnsupportedHost, match="own archive has no fabric manager"):
        make_plan(hgx, Spec(driver_source=DriverSource.DISTRO), CATALOG)


def test_azure_linux_is_told_the_exact_version() -> None:
    plan = make_plan(host(L4, os="azure-3"), Spec(), CATALOG)
    assert any("nvidia-open-595.91.07" in c for c in commands(plan))


def test_470_comes_from_the_archive_that_alone_still_has_it() -> None:
    plan = make_plan(host(T4), Spec(driver=DriverRequest.parse("470")), CATALOG)
    assert any("nvidia-headless-no-dkms-470-server" in c for c in commands(plan))


@pytest.mark.parametrize("asked", ["570", "570.211.01"])
@pytest.mark.parametrize("source", [DriverSource.AUTO, DriverSource.DISTRO])
def test_a_branch_whose_packages_install_another_one_is_refused_and_that_one_named(
    asked: str, source: DriverSource
) -> None:
    with pytest.raises(UnsupportedHost, match="its packages install 580") as refused:
        make_plan(host(L4), Spec(driver=DriverRequest.parse(asked), driver_source=source), CATALOG)
    assert "Ubuntu 24.04's own archive are transitional" in refused.value.evidence
    assert "--driver 580 " in refused.value.remedy.text


def test_a_host_that_has_a_branch_keeps_it_when_its_packages_have_become_transitional() -> None:
    packages = {"nvidia-utils-570-server": PackageVersion("570.172.08-0ubuntu1")}
    driver = DriverFacts(loaded="570.172.08", loaded_flavour="open", installed="570.172.08", installed_flavour="open")
    facts = replace(host(L4), driver=driver, packages=PackageFacts("apt", packages))
    plan = make_plan(facts, Spec(driver=DriverRequest.parse("570")), CATALOG)
    assert plan.driver is not None
    assert plan.driver.kept
