"""Versions with known faults: the finding names the fault and what mends it, and its remedy works on this host."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts, JournalFacts, KubernetesFacts
from gpunode.model.report import Finding, NotApplicable
from tests.checks import hosts as h

CATALOG = load_catalog()
TOOLKIT = CATALOG.toolkit.packages


def finding(id: str, host: HostFacts) -> Finding:
    outcome = run_all(host, None, CATALOG).results[id].outcome
    assert isinstance(outcome, Finding), outcome
    return outcome


def pinned(host: HostFacts, *names: str, journal: JournalFacts | None = None) -> HostFacts:
    return replace(host, packages=replace(host.packages, held=frozenset(names)), journal=journal or JournalFacts())


def test_a_vulnerable_toolkit_is_a_finding_that_setup_mends() -> None:
    found = finding("sec.ctk-cve", h.toolkit(version="1.19.0"))
    assert found.summary == "toolkit 1.19.0 has CVE-2026-24260, fixed in 1.19.1"
    assert found.remedy.text == "gpunode setup --only toolkit"


@pytest.mark.parametrize(
    ("version", "cve"),
    [("1.19.0-rc.4", True), ("1.19.1-rc.1", True), ("1.19.1~rc.1", True), ("1.19.1", False), ("1.20.0-rc.1", False)],
)
def test_a_toolkit_before_its_release_has_no_mend_of_that_release(version: str, cve: bool) -> None:
    outcome = run_all(h.toolkit(version=version), None, CATALOG).results["sec.ctk-cve"].outcome
    assert isinstance(outcome, Finding) is cve


@pytest.mark.parametrize(
    ("journal", "first"),
    [(JournalFacts(), "apt-mark unhold "), (JournalFacts(pinned=frozenset(TOOLKIT)), "gpunode setup ")],
    ids=["an admin's pin is removed first", "gpunode lifts its own"],
)
def test_what_keeps_a_vulnerable_toolkit_comes_first_in_the_remedy(journal: JournalFacts, first: str) -> None:
    found = finding("sec.ctk-cve", pinned(h.toolkit(version="1.19.0"), *TOOLKIT, journal=journal))
    assert found.remedy.text.startswith(first)
    assert ("pinned, and not by gpunode" in found.evidence) is (first == "apt-mark unhold ")


DRIVER = ("nvidia-open", "nvidia-driver-cuda")
OLD = h.driver(loaded="595.58.03", installed="595.58.03")


def old_driver(**changes: object) -> HostFacts:
    packages = h.packages(nvidia__open="595.58.03", nvidia__driver__cuda="595.58.03")
    return replace(OLD, packages=packages, **changes)  # type: ignore[arg-type]


def test_a_vulnerable_driver_is_a_finding_that_setup_mends() -> None:
    found = finding("sec.driver-bulletin", old_driver())
    assert found.summary == "driver 595.58.03 has CVE-2026-47600, fixed in 595.91.07 (NVIDIA's bulletin 5861)"
    assert found.remedy.text == "gpunode setup --only driver"


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        (pinned(old_driver(), *DRIVER), "apt-mark unhold nvidia-driver-cuda nvidia-open; then gpunode setup "),
        (old_driver(driver=replace(OLD.driver, busy=("42 python3",))), "end 42 python3 first (drain the node); then "),
        (old_driver(driver=replace(OLD.driver, installed=h.V)), f"reboot: driver {h.V} is installed already"),
        (old_driver(image_based="ostree"), "upgrade the driver in the image"),
        (replace(OLD, packages=replace(OLD.packages, installed={})), "upgrade it with what installed it"),
        (replace(OLD, packages=h.packages(nvidia__open="", nvidia__open__kernel__dkms="595.58.03")),
         "apt-get install nvidia-open-kernel-dkms, when the distribution has it"),
    ],
    ids=["pinned", "in use", "a reboot is left", "an image's", "nobody's", "the distribution's"],
)  # fmt: skip
def test_what_upgrades_a_vulnerable_driver_depends_on_the_host(host: HostFacts, remedy: str) -> None:
    assert finding("sec.driver-bulletin", host).remedy.text.startswith(remedy)


@pytest.mark.parametrize(
    ("version", "today", "over"),
    [("2.1.9", date(2026, 7, 3), False), ("2.1.9", date(2026, 7, 4), True), ("1.7.29", date(2026, 9, 30), False),
     ("1.7.29", date(2026, 10, 1), True), ("2.3.4", date(2028, 4, 30), False)],
    ids=["its last day", "the day after", "a month's last day", "the month after", "an LTS"],
)  # fmt: skip
def test_an_engine_ends_on_a_day_and_is_a_finding_from_the_next(version: str, today: date, over: bool) -> None:
    host = replace(h.containerd(version=version), packages=h.packages())
    outcome = run_all(host, None, CATALOG, today=today).results["rt.engine-eol"].outcome
    assert isinstance(outcome, Finding) is over
    assert outcome is None or (isinstance(outcome, Finding) and "RELEASES.md" in outcome.evidence)


@pytest.mark.parametrize(
    "host",
    [
        replace(h.containerd(version="1.6.20"), packages=h.packages(containerd="1.6.20~ds1")),
        h.containerd(version="1.6.20", embedded_in="1.35.4+k3s1"),
    ],
    ids=["a Linux distribution's package", "a Kubernetes distribution's"],
)
def test_what_others_maintain_does_not_end_with_its_project(host: HostFacts) -> None:
    outcome = run_all(host, None, CATALOG, today=date(2030, 1, 1)).results["rt.engine-eol"].outcome
    assert isinstance(outcome, NotApplicable)


@pytest.mark.parametrize(
    ("version", "cve"),
    [("1.1.5", True), ("1.2.7", True), ("1.2.8", False), ("1.3.2", True), ("1.3.3", False), ("1.4.0", False)],
)
def test_a_runc_with_a_way_out_of_containers_is_found(version: str, cve: bool) -> None:
    outcome = run_all(h.containerd(runc_version=version), None, CATALOG).results["rt.runc-version"].outcome
    assert (outcome is None) is not cve
    packaged = replace(h.containerd(runc_version=version), packages=h.packages(runc=version))
    outcome = run_all(packaged, None, CATALOG).results["rt.runc-version"].outcome
    assert not isinstance(outcome, Finding), "a distribution mends runc under its own version"


@pytest.mark.parametrize(
    ("cgroup", "version", "allowed", "starts"),
    [("v1", "1.35.0-1.1", False, False), ("hybrid", "1.36.1-1.1", False, False), ("v2", "1.35.0-1.1", False, True),
     ("v1", "1.34.3-1.1", False, True), ("v1", "1.35.0-1.1", True, True)],
)  # fmt: skip
def test_a_kubelet_refuses_cgroup_v1_from_1_35_on(cgroup: str, version: str, allowed: bool, starts: bool) -> None:
    kubelet = KubernetesFacts(True, "systemd", "kubeadm", starts_on_cgroup_v1=allowed)
    host = h.host(cgroup=cgroup, kubernetes=kubelet, packages=h.packages(kubelet=version))
    outcome = run_all(host, None, CATALOG).results["k8s.cgroup-v1"].outcome
    assert (outcome is None) is starts
