"""fleet.*: how a host was reached, and what hosts with the same GPU should have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.uniform import Compared, compared, versions
from gpunode.facts.collect import assemble, load_recording
from gpunode.model.connection import ClockSkew, Connection
from gpunode.model.facts import HostFacts, OsFacts
from gpunode.model.gpu_health import GpuBoard
from gpunode.model.report import CheckOutcome, CheckResult, Finding, NotApplicable, Passed, Severity
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
LOGIN = Connection("ann", "ssh-ed25519 SHA256:abc", "/root/.ssh/known_hosts:3", True, False, ClockSkew(0.2, 0.6))
IDS = ("fleet.clock-skew", "fleet.hostkey", "fleet.ssh-sudo", "fleet.version-uniform")


def over_ssh(host: HostFacts = h.READY, **changes: object) -> HostFacts:
    return replace(host, connection=replace(LOGIN, **changes))  # type: ignore[arg-type]


def verdict(id: str, host: HostFacts) -> CheckResult:
    return run_all(host, None, load_catalog(), today=h.TODAY).results[id]


def skew(ahead_s: float, error_s: float = 0.6) -> HostFacts:
    return over_ssh(skew=ClockSkew(ahead_s, error_s))


def test_these_are_all() -> None:
    assert tuple(doc.id for doc in all_checks() if doc.id.startswith("fleet.")) == IDS


@pytest.mark.parametrize(
    ("id", "host", "saw"),
    [
        ("fleet.hostkey", over_ssh(), "ssh-ed25519 SHA256:abc, as in /root/.ssh/known_hosts:3"),
        ("fleet.ssh-sudo", over_ssh(), "logged in as ann, became root; sudo or doas asked nothing"),
        ("fleet.ssh-sudo", over_ssh(may_ask=True), "logged in as ann, became root; a password was at hand for sudo"),
        ("fleet.ssh-sudo", over_ssh(user="root", becomes=False), "logged in as root, who is root"),
        ("fleet.clock-skew", skew(0.2), "its clock is 0.2 s ahead of this machine's, give or take 0.6 s"),
        ("fleet.clock-skew", skew(-2.5), "its clock is 2.5 s behind this machine's, give or take 0.6 s"),
        ("fleet.clock-skew", skew(2.6), "2.6 s ahead"),
    ],
)
def test_a_pass_says_what_was_seen(id: str, host: HostFacts, saw: str) -> None:
    result = verdict(id, host)
    assert result.outcome is None
    assert saw in result.evidence


@pytest.mark.parametrize(
    ("id", "host", "summary", "quoted"),
    [
        ("fleet.ssh-sudo", replace(over_ssh(), root=False), "no root's rights", "ann, and what sudo ran was not uid 0"),
        ("fleet.ssh-sudo", replace(over_ssh(becomes=False), root=False), "no root's rights", "logged in as ann"),
        ("fleet.clock-skew", skew(2.7), "2.7 s ahead of", "give or take 0.6 s (half of the round trip"),
        ("fleet.clock-skew", skew(-300), "300.0 s behind", "give or take 0.6 s"),
        ("fleet.clock-skew", skew(-20 * 365 * 86400), "175200 h behind", "give or take"),
        ("fleet.clock-skew", skew(12, 5), "12.0 s ahead", "give or take 5.0 s"),
    ],
)
def test_a_fault_is_a_warning_of_its_host(id: str, host: HostFacts, summary: str, quoted: str) -> None:
    result = verdict(id, host)
    assert isinstance(result.outcome, Finding)
    assert summary in result.outcome.summary
    assert quoted in result.outcome.evidence
    assert result.found is Severity.WARNING
    assert result.outcome.entities == ()
    assert result.outcome.remedy


@pytest.mark.parametrize(
    ("id", "host", "reason"),
    [
        *((id, h.READY, "not reached over SSH") for id in IDS if id != "fleet.version-uniform"),
        ("fleet.clock-skew", over_ssh(skew=None), "was not read"),
        ("fleet.clock-skew", skew(1, 4), "took too long to tell"),
        ("fleet.clock-skew", replace(over_ssh(), platform="container"), "those of the machine around it"),
        ("fleet.version-uniform", h.READY, "only a run over several hosts"),
        ("fleet.version-uniform", h.host(pci=()), "no NVIDIA GPU"),
    ],
)
def test_no_verdict_has_its_reason(id: str, host: HostFacts, reason: str) -> None:
    outcome = verdict(id, host).outcome
    assert isinstance(outcome, NotApplicable)
    assert reason in outcome.reason


# ---- fleet.version-uniform


def named(host: HostFacts, name: str) -> HostFacts:
    return replace(host, target=name)


def fleet(*hosts: HostFacts) -> tuple[HostFacts, ...]:
    return tuple(named(host, f"gpu{place:02}") for place, host in enumerate(hosts, 1))


def outcomes(*hosts: HostFacts) -> Sequence[CheckOutcome | Passed]:
    return compared([Compared.of(host) for host in fleet(*hosts)])


OLD_DRIVER = h.driver(loaded="580.95.05")
OLD_KERNEL = h.kernel(release="6.1.0-49-amd64")
OTHER_GPU = h.gpu(device="20b5")
SEEN = replace(h.SEEN, health=replace(h.SEEN.health, board=GpuBoard("699-2G500-0200-000", "96.00.89.00.01")))
OLD_BOARD = replace(SEEN, health=replace(SEEN.health, board=GpuBoard("699-2G500-0200-000", "96.00.10.00.01")))


@pytest.mark.parametrize(
    ("odd", "others", "summary", "evidence"),
    [
        (
            OLD_DRIVER,
            h.READY,
            f"driver 580.95.05, where 2 of 3 hosts with the same GPU have {h.V}",
            f"driver: {h.V} on gpu02, gpu03 / 580.95.05 on gpu01",
        ),
        (
            OLD_KERNEL,
            h.READY,
            f"kernel 6.1.0-49-amd64, where 2 of 3 hosts with the same GPU have {h.KERNEL}",
            "kernel: ",
        ),
        (h.toolkit(version="1.17.8"), h.READY, "toolkit 1.17.8, where", "toolkit: "),
        (h.docker(version="20.10.1"), h.READY, "docker 20.10.1, where", "docker: "),
        (h.smi(OLD_BOARD), h.smi(SEEN), "VBIOS of 699-2G500-0200-000 96.00.10.00.01, where", "96.00.89.00.01 on gpu02"),
    ],
    ids=["driver", "kernel", "toolkit", "engine", "VBIOS"],
)
def test_only_the_host_that_differs_is_warned(odd: HostFacts, others: HostFacts, summary: str, evidence: str) -> None:
    first, second, third = outcomes(odd, others, others)
    assert isinstance(first, Finding)
    assert summary in first.summary
    assert evidence in first.evidence
    assert first.entities == ()
    assert isinstance(second, Passed)
    assert second == third
    assert "as most hosts with this GPU" in second.evidence


def test_two_hosts_that_differ_are_both_warned_with_both_versions() -> None:
    both = outcomes(OLD_DRIVER, h.READY)
    assert both[0] == both[1]
    assert isinstance(both[0], Finding)
    assert both[0].summary == f"driver differs among 2 hosts with the same GPU: 580.95.05, {h.V}"
    assert both[0].evidence == f"driver: 580.95.05 on gpu01 / {h.V} on gpu02"


def test_several_differences_are_one_finding_and_its_remedy_has_a_command_for_what_setup_installs() -> None:
    first, *_ = outcomes(replace(OLD_DRIVER, kernel=OLD_KERNEL.kernel), h.READY, h.READY)
    assert isinstance(first, Finding)
    assert [part.split()[0] for part in first.summary.split("; ")] == ["driver", "kernel"]
    assert first.remedy.command == ("gpunode", "setup", "--only", "driver")
    assert "the kernel by the package manager" in first.remedy.text
    alone, *_ = outcomes(OLD_KERNEL, h.READY, h.READY)
    assert isinstance(alone, Finding)
    assert alone.remedy.command == ()


def test_other_gpu_models_are_not_compared() -> None:
    mine, other, third = outcomes(h.READY, replace(OTHER_GPU, driver=OLD_DRIVER.driver), h.READY)
    assert isinstance(mine, Passed)
    assert mine == third
    assert isinstance(other, NotApplicable)
    assert "no other host of this run has this GPU" in other.reason


def test_the_same_gpu_in_another_number_is_the_same_model() -> None:
    two = h.host(pci=(h.GPU, replace(h.GPU, address="0000:42:00.0")))
    assert all(isinstance(one, Passed) for one in outcomes(two, h.READY))


def test_what_only_one_host_has_and_what_is_not_known_is_not_compared() -> None:
    unknown = replace(h.driver(loaded=None, installed=None), toolkit=replace(h.TOOLKIT, version=None), runtimes=())
    assert all(isinstance(one, Passed) for one in outcomes(h.READY, unknown))
    nothing = replace(unknown, kernel=replace(h.READY.kernel, release=""), driver=replace(unknown.driver, smi=None))
    assert all(isinstance(one, NotApplicable) for one in outcomes(nothing, nothing))


def test_no_gpu_at_all() -> None:
    for one in outcomes(h.host(pci=()), h.host(pci=())):
        assert isinstance(one, NotApplicable)
        assert "no NVIDIA GPU" in one.reason


def test_a_thousand_hosts_make_short_findings() -> None:
    """Half of them has the one version, half the other: no version is that of most."""
    found = outcomes(*[h.READY, OLD_DRIVER] * 500)
    assert all(isinstance(one, Finding) and len(one.evidence) < 300 for one in found)
    many = outcomes(*(h.driver(loaded=f"580.{n}") for n in range(1000)))
    assert all(isinstance(one, Finding) and len(one.summary) < 300 and len(one.evidence) < 300 for one in many)


@pytest.mark.parametrize("odd", ["", "\x1b[31m\n", "9" * 100_000, "\udcff", "x;y / z"], ids=repr)
def test_odd_versions_are_bounded_and_answered(odd: str) -> None:
    host = replace(h.driver(loaded=odd), kernel=replace(h.READY.kernel, release=odd))
    assert all(len(version) <= 80 for version in versions(host).values())
    assert len(outcomes(host, h.READY, h.READY)) == 3


def test_recordings_are_compared() -> None:
    ready = assemble(load_recording(EXAMPLES / "debian12-ready"), "ready")
    assert all(isinstance(one, Passed) for one in outcomes(ready, ready))
    other = assemble(load_recording(EXAMPLES / "ubuntu2404-hgx-h100"), "hgx")
    assert [type(one) for one in outcomes(ready, other)] == [NotApplicable, NotApplicable]


@pytest.mark.parametrize(
    ("os", "unit"),
    [
        (OsFacts("debian", "12"), "chrony"),
        (OsFacts("ubuntu", "24.04", ("debian",)), "chrony"),
        (OsFacts("rocky", "9"), "chronyd"),
    ],
    ids=lambda v: v.id if isinstance(v, OsFacts) else v,
)
def test_the_clocks_daemon_is_enabled_by_the_name_that_this_host_has(os: OsFacts, unit: str) -> None:
    outcome = verdict("fleet.clock-skew", replace(skew(12), os=os)).outcome
    assert isinstance(outcome, Finding)
    assert outcome.remedy is not None
    assert outcome.remedy.text.startswith(f"systemctl enable --now {unit}, with chrony installed")
