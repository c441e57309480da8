"""Each column says of a host what its facts say, in one short text; what is not known is None."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from gpunode.errors import ExitCode
from gpunode.model.facts import DriverFacts, HostFacts, KernelFacts, KubernetesFacts, ServiceFacts, ToolkitFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.render.matrix.readings import natural
from gpunode.render.matrix.table import STANDINGS, table
from tests.render.matrix.fleets import AT_S, CDI, CONFIG, DAY_S, L40S, checked, error, facts, lost, passing, warning

Change = Callable[[HostFacts], HostFacts]


def shown(outcome: HostOutcome) -> dict[str, str | None]:
    """Column -> what the page shows of this host alone."""
    data = table([outcome], at_s=AT_S, ssh=False)
    (host,) = data["hosts"]
    columns = zip(data["columns"], host["row"], strict=True)
    return {column["key"]: None if place < 0 else column["values"][place] for column, place in columns}


def test_a_node_on_which_all_is_well() -> None:
    assert shown(passing(facts())) == {
        "failing": None,
        "gpu": "8 × H100 SXM5 80GB",
        "system": "Ubuntu 24.04",
        "kernel": "6.8.0-51-generic",
        "driver": "595.91.07",
        "module": "open",
        "libraries": "595.91.07",
        "fabric": "active",
        "toolkit": "1.20.0",
        "engine": "containerd 2.1.9",
        "handler": "nvidia",
        "cgroup": "systemd",
        "cdi": "12 d",
        "config": shown(passing(facts("another")))["config"],
    }


def _two_engines(host: HostFacts) -> HostFacts:
    other = replace(host.runtimes[0], name="docker", version="28.5.2", effective_default="runc", config_path="/x")
    return replace(host, runtimes=(other, *host.runtimes))


def _of_a_user(host: HostFacts) -> HostFacts:
    return replace(host, runtimes=(*host.runtimes, replace(host.runtimes[0], user="ann", version="1.6.0")))


def _libraries(*versions: str) -> Change:
    found = MappingProxyType({"libcuda.so.1": tuple(f"/usr/lib/libcuda.so.{version}" for version in versions)})
    return lambda host: replace(host, driver=replace(host.driver, libraries=found))


def _files(*files: FileFacts) -> Change:
    return lambda host: replace(host, files=MappingProxyType({**host.files, **{file.path: file for file in files}}))


def _with(**fields: object) -> Change:
    return lambda host: replace(host, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "column", "want"),
    [
        (_with(pci=()), "gpu", "none"),
        (
            lambda h: replace(h, pci=(*h.pci[:2], *facts(device=L40S, gpus=1).pci)),
            "gpu",
            "2 × H100 SXM5 80GB + 1 × L40S",
        ),
        (_with(kernel=KernelFacts("6.8.0-49", next_boot="6.8.0-51")), "kernel", "6.8.0-49, next 6.8.0-51"),
        (_with(kernel=KernelFacts("")), "kernel", None),
        (_with(driver=DriverFacts()), "driver", "none"),
        (_with(driver=DriverFacts()), "module", None),
        (_with(driver=DriverFacts(installed="595.91.07")), "driver", "595.91.07, not loaded"),
        (_with(driver=DriverFacts(loaded="580.1", installed="595.2")), "driver", "580.1, 595.2 installed"),
        (_with(driver=DriverFacts(installed="595.2", installed_flavour="proprietary")), "module", "proprietary"),
        (_libraries("595.91.07", "580.95.05"), "libraries", "580.95.05, 595.91.07"),
        (_libraries(), "libraries", None),
        (_with(services=MappingProxyType({})), "fabric", None),
        (
            _with(services=MappingProxyType({"nvidia-fabricmanager.service": ServiceFacts()})),
            "fabric",
            "not installed",
        ),
        (_with(toolkit=ToolkitFacts()), "toolkit", "none"),
        (_with(toolkit=ToolkitFacts()), "cdi", None),
        (_with(runtimes=()), "engine", "none"),
        (_with(runtimes=()), "handler", None),
        (_with(runtimes=()), "config", None),
        (_two_engines, "engine", "docker 28.5.2, containerd 2.1.9"),
        (_two_engines, "handler", "docker runc, containerd nvidia"),
        (_of_a_user, "engine", "containerd 2.1.9"),
        (
            _with(kubernetes=KubernetesFacts(kubelet_cgroup_driver="cgroupfs")),
            "cgroup",
            "containerd systemd, kubelet cgroupfs",
        ),
        (_files(FileFacts(CDI, "", "1" * 64, written_at=int(AT_S) + DAY_S)), "cdi", "0 d"),
        (_files(FileFacts(CDI, "", "1" * 64)), "cdi", None),
        (_files(FileFacts(CONFIG, None, unread="permission denied")), "config", None),
        (_files(FileFacts(CONFIG)), "config", "no files"),
    ],
)
def test_what_a_column_says(change: Change, column: str, want: str | None) -> None:
    assert shown(passing(change(facts())))[column] == want


def test_the_hash_is_of_what_the_files_say_and_of_no_secret() -> None:
    def hash_of(text: str) -> str | None:
        return shown(passing(_files(FileFacts(CONFIG, text, "0" * 64))(facts())))["config"]

    assert hash_of('auth = "hunter2"\n[plugins]\npassword = "a"\n') == hash_of(
        'auth = "hunter2"\n[plugins]\npassword = "b"\n'
    )
    assert hash_of("version = 2\n") != hash_of("version = 3\n")


def test_failing_checks_are_errors_and_warnings_where_there_are_none() -> None:
    two = (warning("os.reboot", "a reboot is pending", "-"), error("drv.loaded", "no driver", "-"))
    assert shown(checked(facts(), *two))["failing"] == "drv.loaded"
    assert shown(checked(facts(), two[0]))["failing"] == "os.reboot"


def test_a_host_without_a_report_is_a_row_with_its_reason() -> None:
    (host,) = table([lost("gpu90")], at_s=AT_S, ssh=True)["hosts"]
    assert set(host["row"]) == {-1}
    assert host["why"] == (
        "connection timed out",
        "no answer from 10.0.3.7 port 22 within 10 s",
        "look at its console",
        "fleet.ssh-sudo",
    )


def test_values_are_in_the_order_of_their_numbers() -> None:
    ages = [_files(FileFacts(CDI, "", written_at=int(AT_S) - days * DAY_S)) for days in (100, 3, 20)]
    hosts = [passing(change(facts(f"gpu{10 - n}"))) for n, change in enumerate(ages)]
    data = table(hosts, at_s=AT_S, ssh=False)
    assert [host["name"] for host in data["hosts"]] == ["gpu8", "gpu9", "gpu10"]
    assert next(c["values"] for c in data["columns"] if c["key"] == "cdi") == ["3 d", "20 d", "100 d"]


@pytest.mark.parametrize("text", ["", "²³", "9" * 5000, "٣", "a1b2", "١٢"])
def test_any_text_has_a_place_in_the_order(text: str) -> None:
    assert sorted(["gpu2", text, "10"], key=natural)


def test_a_remedy_over_ssh_names_its_host_and_a_finding_of_many_hosts_is_there_once() -> None:
    found = error("rt.effective-default", "runc is the default", "-", "reload it")
    hosts = [checked(facts(f"gpu{n}"), found) for n in range(5)]
    assert len(table(hosts, at_s=AT_S, ssh=True)["findings"]) == 1
    by_setup = [checked(facts("gpu7"), error("rt.effective-default", "runc is the default", "-"))]
    (one,) = table(by_setup, at_s=AT_S, ssh=True)["findings"]
    assert one["remedy"] == "gpunode setup --ssh gpu7 --only runtime"


def test_hosts_that_show_alike_have_links_of_their_own() -> None:
    data = table([passing(facts(name)) for name in ("gpu1", "gpu1", "gpu1~2", "gpu1")], at_s=AT_S, ssh=False)
    assert [host["key"] for host in data["hosts"]] == ["gpu1", "gpu1~2", "gpu1~3", "gpu1~2~2"]


def test_a_host_that_lost_a_gpu_is_compared_with_those_that_have_all() -> None:
    hosts = [passing(facts("a")), passing(facts("b")), passing(facts("c", gpus=7)), passing(facts("d", device=L40S))]
    by_model = table(hosts, at_s=AT_S, ssh=False)["groupings"][0]
    assert by_model["names"] == ["H100 SXM5 80GB", "L40S"]
    assert by_model["of"] == [0, 0, 0, 1]


def test_a_host_to_which_no_check_applies_has_no_verdict() -> None:
    """The site's checks, gpunode's own tables and what passes on any host are none either: the rule of check --npd."""
    own = CheckResult("mig.layout", Severity.ERROR, NotApplicable("no GPU has MIG"))
    tables = CheckResult("sec.cve-db-age", Severity.WARNING, None)
    foreign = CheckResult("site.disk", Severity.ERROR, None, foreign="/etc/checks/disk.yaml")
    anywhere = CheckResult("os.answers-understood", Severity.ERROR, None)
    report = CheckReport("gpu01", {one.id: one for one in (own, tables, foreign, anywhere)}, facts())
    data = table([HostOutcome("gpu01", ExitCode.DONE, check=report), passing(facts("gpu02"))], at_s=AT_S, ssh=False)
    assert [STANDINGS[host["standing"]] for host in data["hosts"]] == ["unjudged", "pass"]


def test_the_page_has_the_same_standings_in_the_same_order() -> None:
    script = (Path(__file__).parents[3] / "templates" / "fleet" / "state.js").read_text()
    assert tuple(re.findall(r'\{key: "(\w+)", word', script)) == STANDINGS


def test_a_warning_that_explains_an_error_is_what_fails() -> None:
    cause, other = warning("os.reboot", "a reboot is pending", "-"), warning("os.swap", "there is swap", "-")
    follows = error("drv.loaded", "another driver is loaded", "-")
    assert isinstance(cause.outcome, Finding)
    assert isinstance(follows.outcome, Finding)
    cause = replace(cause, outcome=replace(cause.outcome, consequences=("drv.loaded",)))
    follows = replace(follows, outcome=replace(follows.outcome, cause="os.reboot"))
    assert shown(checked(facts(), cause, follows, other))["failing"] == "os.reboot"
