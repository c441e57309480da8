"""One cause is one finding: what it explains stands under it, and counts neither as a pass nor as not applicable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.checks import all_checks
from gpunode.checks.causes import IN_SHORT, TABLE, explained_by, explains, folded
from gpunode.cli.verbs.check_host import check_code, checked
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.model.entities import Entity, pci, place, unit
from gpunode.model.facts import HostFacts
from gpunode.model.layers import LAYERS, group_of
from gpunode.model.report import CheckOutcome, CheckReport, CheckResult, Finding, HostOutcome, Severity
from gpunode.model.spec import Spec
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.render.check_text import check_text, fitting
from gpunode.render.machine import host_line
from gpunode.render.style import Style
from gpunode.transport.recorded import Recorded
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
IDS = {doc.id for doc in all_checks()}
SETUP = Remedy(RepairAction.UPGRADE, setup())
BARE = replace(h.driver(loaded=None, installed=None, dkms=()), packages=replace(h.packages(), installed={}))
BARE = replace(BARE, kernel=replace(BARE.kernel, trees=()))
ONE, TWO = h.GPU.address, "0000:61:00.0"


def found(*about: Entity, remedy: Remedy = SETUP, cause: str | None = None) -> Finding:
    return Finding("it is broken", "seen", remedy, entities=about, cause=cause)


def report(outcomes: Mapping[str, CheckOutcome], host: HostFacts = h.READY) -> CheckReport:
    return folded(CheckReport("gpu01", {id: CheckResult(id, Severity.ERROR, o) for id, o in outcomes.items()}, host))


def causes(report: CheckReport) -> dict[str, Sequence[str]]:
    return {cause.id: [result.id for result in report.consequences(cause)] for cause in report.causes}


def sample(slug: str) -> CheckReport:
    outcome = checked(Host(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug), recorded=True), Spec(), False)
    assert outcome.check is not None
    return outcome.check


@pytest.mark.parametrize("driver", [True, False])
def test_no_finding_explains_itself_in_the_end(driver: bool) -> None:
    arrows = {id: set[str]() for id in IDS}
    for row in TABLE:
        if row.driver in (None, driver):
            arrows[row.cause] |= set(row.consequences)
    while leaves := {id for id, there in arrows.items() if not there & set(arrows)}:
        arrows = {id: there for id, there in arrows.items() if id not in leaves}
    assert not arrows


def test_the_table_names_checks_that_there_are_and_says_what_their_findings_are_called() -> None:
    consequences = {id for row in TABLE for id in row.consequences}
    assert consequences | {row.cause for row in TABLE} <= IDS
    assert consequences == set(IN_SHORT)


def test_every_group_of_checks_has_its_layer() -> None:
    assert {group_of(id) for id in IDS} - set(LAYERS) == set()


def test_what_the_table_says_is_told_from_both_ends() -> None:
    assert "drv.module-loaded" in explains("boot.nouveau-loaded")
    assert "boot.nouveau-loaded" in explained_by("drv.module-loaded")
    assert explains("sec.cve-db-age") == explained_by("sec.cve-db-age") == ()


def test_a_chain_is_told_from_its_beginning_what_is_nearest_first() -> None:
    told = report({id: found() for id in ("user.smi-works", "drv.module-loaded", "boot.nouveau-loaded")})
    assert causes(told) == {"boot.nouveau-loaded": ["drv.module-loaded", "user.smi-works"]}


def test_a_check_that_passed_explains_nothing() -> None:
    told = report({"user.smi-works": found(), "drv.module-loaded": None, "boot.nouveau-loaded": found()})
    assert set(causes(told)) == {"boot.nouveau-loaded", "user.smi-works"}


@pytest.mark.parametrize(
    ("gone", "lost", "explained"),
    [
        (pci(ONE), pci(ONE), True),
        (pci(ONE, TWO), pci(TWO), True),
        (pci(ONE), pci(TWO), False),
        (pci(ONE), pci(ONE, TWO), False),
        (pci(ONE), (), False),
        ((), pci(ONE), False),
    ],
    ids=["the same", "one of them", "another", "one more", "which one is not known", "the cause names none"],
)
def test_only_what_is_about_the_same_gpu_is_explained(
    gone: tuple[Entity, ...], lost: tuple[Entity, ...], explained: bool
) -> None:
    told = report({"pci.fallen-off-bus": found(*gone), "pci.count-vs-driver": found(*lost)})
    assert ("pci.count-vs-driver" not in causes(told)) is explained


def test_of_two_engines_each_may_have_a_cause_of_its_own() -> None:
    docker, containerd = unit("docker.service"), unit("containerd.service")
    both = {"rt.docker-file": found(place("/d"), *docker), "rt.effective-default": found(*docker, *containerd)}
    assert "rt.effective-default" in causes(report(both)), "containerd's is not explained"
    told = report({**both, "rt.containerd-file": found(*containerd)})
    assert "rt.effective-default" not in causes(told)


def test_nouveau_is_the_cause_where_a_driver_is_installed_and_else_what_the_kernel_had() -> None:
    both = {"boot.nouveau-loaded": found(), "drv.module-loaded": found()}
    assert set(causes(report(both))) == {"boot.nouveau-loaded"}
    assert set(causes(report(both, BARE))) == {"drv.module-loaded"}


@pytest.mark.parametrize(("host", "remedy", "own"), [(BARE, SETUP, False), (h.READY, SETUP, True), (BARE, None, True)],
                         ids=["one command does both", "a driver is there", "another command"])  # fmt: skip
def test_a_host_that_was_never_set_up_lacks_the_toolkit_for_the_same_reason(
    host: HostFacts, remedy: Remedy | None, own: bool
) -> None:
    other = remedy or Remedy(RepairAction.UPGRADE, setup("--only", "toolkit"))
    told = report({"drv.module-loaded": found(), "ctk.installed": found(remedy=other)}, host)
    assert ("ctk.installed" in causes(told)) is own


def test_a_circle_hides_nobody() -> None:
    told = report({"setup.driver": found(cause="ctk.repo"), "ctk.repo": found(cause="setup.driver")})
    assert set(causes(told)) == {"setup.driver", "ctk.repo"}


def test_a_cause_is_as_bad_as_what_follows_from_it() -> None:
    warned = replace(found(), severity=Severity.WARNING)
    told = report({"drv.headers-meta": warned, "drv.headers-running": found(), "sec.cve-db-age": warned})
    assert [(cause.id, told.weight(cause)) for cause in told.causes] == [
        ("drv.headers-meta", Severity.ERROR),
        ("sec.cve-db-age", Severity.WARNING),
    ]
    assert check_code(told, strict=False) is ExitCode.FAILED


def test_the_worst_comes_first_then_the_lowest_layer() -> None:
    ids = ("rt.present", "sec.ctk-cve", "pci.bar1-size", "boot.cmdline-blocks", "ctk.config", "dev.modes")
    told = report({id: found() for id in ids})
    assert list(causes(told)) == [ids[2], ids[3], ids[5], ids[4], ids[0], ids[1]]


@pytest.mark.parametrize("slug", ["debian12-main-only", "fedora44-rtx4090", "azure3-a100", "rhel9-hgx-h200"])
def test_on_a_bare_host_one_finding_names_one_command(slug: str) -> None:
    told = sample(slug)
    failing = [cause for cause in told.causes if told.weight(cause) is Severity.ERROR]
    assert [cause.id for cause in failing] == ["drv.module-loaded"]
    assert isinstance(failing[0].outcome, Finding)
    assert failing[0].outcome.remedy.command[:2] == ("gpunode", "setup")


@pytest.mark.parametrize("slug", ["debian12-l4", "fedora44-rtx4090", "nixos-l4"])
def test_what_follows_counts_neither_as_a_pass_nor_as_not_applicable(slug: str) -> None:
    told = sample(slug)
    follow = sum(map(len, causes(told).values()))
    assert follow
    assert told.passed + told.not_applicable + len(told.causes) + follow == len(told.results)
    assert f" · {follow} more follow · " in " ".join(check_text(told, Style(160)).split())


def test_consequences_are_one_line_and_all_of_them_with_v() -> None:
    told = sample("debian12-main-only")
    (cause,) = told.causes
    first, *_ = check_text(told, Style(140)).splitlines()
    assert "; so GPUs without the driver, no container toolkit and 3 more" in first
    assert "; so GPUs without the driver and 4 more" in check_text(told, Style(100)).splitlines()[0]
    wordy = check_text(told, Style(100, verbose=1))
    assert all(f"so        {result.id}: " in wordy for result in told.consequences(cause))


def test_as_many_as_fit_and_the_number_of_the_rest() -> None:
    words = ["module not loaded", "nvidia-smi fails", "no device nodes"]
    assert fitting(words, 60) == "module not loaded, nvidia-smi fails, no device nodes"
    assert fitting(words, 50) == "module not loaded, nvidia-smi fails and 1 more"
    assert fitting(words, 30) == "module not loaded and 2 more"
    assert fitting(words, 10) == ""
    assert fitting([], 60) == ""


def test_a_program_reads_cause_consequences_and_entities() -> None:
    told = report({"pci.fallen-off-bus": found(*pci(ONE)), "pci.count-vs-driver": found(*pci(ONE))})
    line = json.loads(host_line("check", HostOutcome("gpu01", ExitCode.FAILED, check=told)))
    rows = {row["id"]: row for row in line["checks"]}
    assert rows["pci.count-vs-driver"]["cause"] == "pci.fallen-off-bus"
    assert rows["pci.fallen-off-bus"]["cause"] is None
    assert rows["pci.fallen-off-bus"]["consequences"] == ["pci.count-vs-driver"]
    assert rows["pci.fallen-off-bus"]["entities"] == [{"kind": "pci", "name": ONE, "line": None}]
