"""What the planner answers stands in the report: its refusals, what it would not do, and one command for all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.agreement import agreed
from gpunode.cli.options.spec import texts_of_words
from gpunode.errors import GpunodeError
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, Finding, Severity
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from gpunode.remedy import RepairAction
from gpunode.specfile import put_all
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
MAIN, DROP_IN = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-nvidia.toml"
TEMPLATE = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl"
NO_CRI = replace(
    h.CONTAINERD_ENGINE, version="2.1.4", imports=(DROP_IN,), cri_error="unknown service runtime.v1.RuntimeService",
    effective_default=None, effective_source="", handlers=(), systemd_cgroup={},
)  # fmt: skip


def sample(slug: str) -> HostFacts:
    return assemble(load_recording(EXAMPLES / slug), slug)


def report_of(host: HostFacts) -> CheckReport:
    return agreed(run_all(host, Spec(), load_catalog(), today=h.TODAY), lambda options: plan_of(host, options))


def plan_of(host: HostFacts, options: tuple[str, ...]) -> Plan:
    return make_plan(host, put_all(Spec(), texts_of_words(options)), load_catalog())


def refusal(host: HostFacts, part: str) -> GpunodeError:
    with pytest.raises(GpunodeError) as caught:
        plan_of(host, ("--only", part))
    return caught.value


def finding(report: CheckReport, id: str) -> Finding:
    outcome = report.results[id].outcome
    assert isinstance(outcome, Finding), outcome
    return outcome


def remedies(report: CheckReport) -> dict[str, str]:
    """Of the findings that no refusal explains."""
    found = {r.id: r.outcome for r in report.results.values() if isinstance(r.outcome, Finding)}
    return {id: one.remedy.text for id, one in found.items() if one.cause is None}


def explained(report: CheckReport, cause: str) -> set[str]:
    return {id for id, r in report.results.items() if isinstance(r.outcome, Finding) and r.outcome.cause == cause}


def with_engine(host: HostFacts, name: str, **changes: object) -> HostFacts:
    def changed(facts: RuntimeFacts) -> RuntimeFacts:
        return replace(facts, **changes) if facts.name == name else facts  # type: ignore[arg-type]

    return replace(host, runtimes=tuple(map(changed, host.runtimes)))


def with_driver(host: HostFacts, version: str, **more: object) -> HostFacts:
    driver = replace(h.READY.driver, loaded=version, installed=version, **more)  # type: ignore[arg-type]
    installed = {**host.packages.installed, "nvidia-driver": PackageVersion(version)}
    return replace(host, driver=driver, packages=replace(host.packages, installed=installed))


def with_file(host: HostFacts, path: str, text: str) -> HostFacts:
    return replace(host, files={**host.files, path: FileFacts(path, text)})


MIXED = with_file(h.host(runtimes=(NO_CRI,)), MAIN, "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n")
NVIDIA = "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n"
MIXED = with_file(MIXED, DROP_IN, f"version = 2\n{NVIDIA}")


@pytest.mark.parametrize(
    ("host", "part", "instead_of"),
    [
        (sample("ubuntu2204-m2070"), "driver", {"drv.module-loaded", "pci.driver-bound"}),
        (sample("debian11-t4"), "driver", {"drv.module-loaded", "pci.driver-bound"}),
        (sample("fedora43-rtx5090"), "driver", {"boot.nouveau-loaded", "drv.module-loaded", "pci.driver-bound"}),
        (with_file(sample("ubuntu2404-k3s-l4"), TEMPLATE, "version = 2\n"), "runtime", {"rt.effective-default"}),
    ],
    ids=["a GPU too old", "a source without a driver", "a key that is not known",
         "a k3s template without its base"],
)  # fmt: skip
def test_a_refusal_of_the_planner_is_one_finding_in_its_words(host: HostFacts, part: str, instead_of: set[str]) -> None:
    report, error = report_of(host), refusal(host, part)
    found = finding(report, f"setup.{part}")
    assert (f"{host.hostname}: {found.summary}".endswith(error.problem), found.evidence) == (True, error.evidence)
    assert (found.remedy, found.severity) == (error.remedy, Severity.ERROR)
    assert explained(report, f"setup.{part}") == instead_of
    assert not any(f"--only {part}" in text for id, text in remedies(report).items() if not id.startswith("setup."))


def test_a_drop_in_in_another_version_explains_what_setup_refuses_for_it() -> None:
    report, error = report_of(MIXED), refusal(MIXED, "runtime")
    found = finding(report, "rt.dropin-version")
    assert error.problem in found.evidence
    assert all(path in found.evidence for path in (MAIN, DROP_IN))
    assert explained(report, "rt.dropin-version") == {"rt.cri-disabled"}
    assert not isinstance(report.results["setup.runtime"].outcome, Finding)


def test_docker_as_a_snap_explains_what_setup_refuses_for_it() -> None:
    host = with_engine(sample("ubuntu2404-cuda"), "docker", snap=True)
    report, error = report_of(host), refusal(host, "runtime")
    found = finding(report, "rt.snap-docker")
    assert error.problem in found.evidence
    assert found.remedy == error.remedy
    assert explained(report, "rt.snap-docker") == {"rt.docker-file", "rt.docker-live", "rt.effective-default"}
    assert not isinstance(report.results["setup.runtime"].outcome, Finding)


def test_what_refuses_the_whole_host_is_one_finding() -> None:
    report = report_of(sample("nixos-l4"))
    assert {id for id in remedies(report) if id.startswith("setup.")} == {"setup.driver"}
    assert explained(report, "setup.driver") >= {"ctk.installed", "drv.module-loaded", "rt.docker-file"}


def test_one_engine_that_is_refused_hides_no_other() -> None:
    host = with_engine(sample("debian12-l4"), "docker", snap=True)
    report = report_of(host)
    assert explained(report, "rt.snap-docker") == {"rt.docker-file", "rt.docker-live"}
    assert finding(report, "rt.effective-default").remedy.text == "gpunode setup"
    assert "containerd.default" in {step.id for step in plan_of(host, ()).steps}


def test_a_file_that_does_not_parse_is_named_once() -> None:
    broken = replace(h.docker(effective_default="runc", handlers=("runc",)), files=h.files(docker="{"))
    report = report_of(broken)
    assert set(remedies(report)) == {"rt.docker-file"}
    assert explained(report, "rt.docker-file") == {"rt.config-drift", "rt.docker-live", "rt.effective-default"}


def test_a_driver_that_is_there_keeps_its_own_finding_and_is_told_what_is_in_the_way() -> None:
    host = with_driver(sample("fedora43-rtx5090"), "470.256.02")  # where the key is not known
    report, error = report_of(host), refusal(host, "driver")
    old = finding(report, "drv.branch-vs-arch")
    assert old.summary.endswith("is not supported by branch 470")
    assert old.remedy.text == "setup is refused, and setup.driver shows why: that comes first"
    assert finding(report, "setup.driver").summary == error.problem


@pytest.mark.parametrize(
    ("slug", "ended", "number"),
    [("debian12-l4", "570.86.15", "595"), ("el8-v100", "570.86.15", "580")],
    ids=["the production branch", "the last that drives the GPU"],
)
def test_an_ended_branch_is_left_for_one_that_setup_installs(slug: str, ended: str, number: str) -> None:
    host = with_driver(sample(slug), ended, loaded_flavour="proprietary", installed_flavour="proprietary")
    assert {step.id for step in plan_of(host, ("--only", "driver")).steps} & {"driver.install"} == set(), "it is kept"
    command = finding(report_of(host), "drv.branch-eol").remedy.command
    assert command == ("gpunode", "setup", "--only", "driver", "--driver", number, "--reboot", "if-needed")
    assert "driver.install" in {step.id for step in plan_of(host, command[2:]).steps}


def test_gpus_in_use_explain_no_fault() -> None:
    host = with_driver(sample("debian12-l4"), "470.256.02", busy=("4242 python3",))
    report = report_of(host)
    assert finding(report, "drv.branch-vs-arch").remedy.action is RepairAction.WAIT
    assert finding(report, "setup.driver").summary.endswith("the driver would change under 4242 python3")


def test_without_root_the_planner_refuses_nothing() -> None:
    host = sample("debian11-t4")
    assert set(remedies(report_of(replace(host, root=False)))) >= {"drv.module-loaded", "pci.driver-bound"}
    assert set(remedies(report_of(host))) & {"drv.module-loaded", "pci.driver-bound"} == set()


@pytest.mark.parametrize(
    ("slug", "id", "words"),
    [
        ("debian12-runfile", "boot.nouveau-blacklisted", "echo blacklist nouveau > /etc/modprobe.d/"),
        ("rhel9-switch-flavour", "drv.headers-meta", "install kernel-devel-matched"),
    ],
    ids=["nouveau next to a .run driver", "headers that setup does not follow"],
)
def test_where_setup_would_do_nothing_the_remedy_is_another(slug: str, id: str, words: str) -> None:
    found = finding(report_of(sample(slug)), id)
    assert found.remedy.text.startswith(words)
    assert found.remedy.command == ()


NO_MODULE = replace(h.TREE, release="6.1.0-49-amd64", nvidia_module=None)
TO_ENROL = replace(h.READY.security, secure_boot=True)
HEADERS = {f"linux-headers-{h.KERNEL}": PackageVersion("1"), "linux-headers-amd64": PackageVersion("1")}
EMPTIED = replace(
    h.kernel(trees=(replace(h.TREE, headers=False),)),
    packages=replace(h.READY.packages, installed={**h.READY.packages.installed, **HEADERS}),
)


@pytest.mark.parametrize(
    ("host", "id", "words"),
    [
        (h.kernel(trees=(h.TREE, NO_MODULE)), "drv.dkms-next", "remove that kernel, or install its headers"),
        (replace(h.kernel(trees=(h.TREE, NO_MODULE)), security=TO_ENROL), "drv.dkms-next", "remove that kernel"),
        (EMPTIED, "drv.headers-running", "install linux-headers-"),
    ],
    ids=[
        "a kernel that setup does not build for",
        "whatever else setup has to do",
        "headers that are installed and gone",
    ],
)
def test_a_module_that_setup_would_not_build_is_to_be_built_by_hand(host: HostFacts, id: str, words: str) -> None:
    found = finding(report_of(host), id)
    assert found.remedy.text.startswith(words)
    assert found.remedy.command == ()


@pytest.mark.parametrize(
    ("slug", "command"),
    [
        ("debian12-l4", "gpunode setup"),
        ("debian11-t4", "gpunode setup --only toolkit,runtime"),
        ("ubuntu2204-gpu-operator", None),
        ("debian12-runfile", "gpunode setup"),
        ("ubuntu2204-jetson-orin", "gpunode setup"),
    ],
    ids=[
        "a bare host",
        "without a driver for it",
        "the operator has them",
        "another's driver",
        "the platform's driver",
    ],
)
def test_where_one_setup_mends_all_the_remedies_name_that(slug: str, command: str | None) -> None:
    found = [r.outcome for r in report_of(sample(slug)).results.values() if isinstance(r.outcome, Finding)]
    assert {" ".join(one.remedy.command) for one in found if one.remedy.command} == ({command} if command else set())


def test_one_command_has_the_action_of_what_it_does() -> None:
    actions = {r.outcome.remedy.action for r in report_of(sample("debian12-l4")).failures
               if isinstance(r.outcome, Finding)}  # fmt: skip
    assert actions == {RepairAction.UPGRADE}, "packages are installed, and nothing reboots"


def test_a_healthy_host_costs_no_plan() -> None:
    def planned(options: tuple[str, ...]) -> Plan:
        raise AssertionError(options)

    report = run_all(h.READY, Spec(), load_catalog())
    assert agreed(report, planned) == report
