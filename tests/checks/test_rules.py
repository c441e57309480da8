"""A site's rules: what is left out, weighed otherwise or accepted says so, and hides nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.catalog.profiles import profiles
from gpunode.checks import all_checks, run_all
from gpunode.checks.causes import folded
from gpunode.checks.rules.judged import Judgement, ruled
from gpunode.checks.rules.patterns import matches, parse_patterns
from gpunode.checks.rules.profile import fitting
from gpunode.errors import UsageError
from gpunode.model.facts import DriverFacts, HostFacts, KubernetesFacts
from gpunode.model.report import CheckReport, Finding, NotApplicable, Severity
from gpunode.model.rules import Acknowledgement, Rules
from gpunode.model.smi import SmiGpu
from tests.checks import hosts as h
from tests.checks.test_scenarios import unloaded

IDS = tuple(doc.id for doc in all_checks())
LATER, PAST = date(2026, 6, 2), date(2026, 5, 31)  # h.TODAY is between them
TWO = replace(h.SEEN, index=1, pci_address="0000:61:00.0", uuid="GPU-2")
ONE = replace(h.SEEN, uuid="GPU-1")
SWITCH_LOST = h.host(pci=(h.GPU, *h.SWITCHES[:3]))
NOT_LOADED = unloaded()
PENDING = "health.recovery-action"


def report(host: HostFacts, rules: Rules | None = None, **more: object) -> CheckReport:
    judgement = Judgement(rules or Rules(), **more)  # type: ignore[arg-type]
    return folded(ruled(run_all(host, None, load_catalog(), h.TODAY), judgement, load_catalog(), h.TODAY))


def pending(*gpus: SmiGpu) -> HostFacts:
    """GPUs that ask for a reset."""
    sick = [replace(gpu, recovery="Reset") for gpu in gpus]
    pci = tuple(replace(h.GPU, address=gpu.pci_address) for gpu in sick)
    return replace(h.smi(*sick), pci=(*pci, *h.SWITCHES))


def accept(id: str, entity: str | None = None, expires: date = LATER) -> Acknowledgement:
    return Acknowledgement(id, "the window is on Sunday", expires, entity)


def causes(told: CheckReport) -> list[str]:
    return [cause.id for cause in told.causes]


@pytest.mark.parametrize(
    ("pattern", "id", "is_one"),
    [
        ("drv.taint", "drv.taint", True), ("drv", "drv.taint", True), ("drv.*", "drv.taint", True),
        ("*.taint", "drv.taint", True), ("health.ecc-*", "health.ecc-mode", True), ("dr", "drv.taint", False),
        ("drv.t", "drv.taint", False), ("[d]rv.taint", "drv.taint", False), ("", "drv.taint", False),
    ],
)  # fmt: skip
def test_a_pattern_is_an_id_a_group_or_has_stars(pattern: str, id: str, is_one: bool) -> None:
    assert matches(id, pattern) is is_one


@pytest.mark.parametrize("end", ["", "*", "?", "**", "*x", ".*", "[a]*"])
def test_a_pattern_that_is_compared_as_text_matches_what_fnmatch_would(end: str) -> None:
    for id in IDS:
        for pattern in {id[:length] + end for length in (0, 1, 3, 5, 8, 99)}:
            expected = id == pattern or id.split(".")[0] == pattern or fnmatchcase(id, pattern.replace("[", "[[]"))
            assert matches(id, pattern) is expected, pattern


@pytest.mark.parametrize(
    ("text", "near"), [("os.swpa", "os.swap"), ("helth", "health"), ("drv.,os", "drv"), ("healt.*", "")]
)
def test_a_pattern_that_no_check_has_is_refused_with_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_patterns("--only", [text], IDS)
    assert near in caught.value.evidence


def test_only_and_skip_leave_the_others_without_a_verdict_and_say_so() -> None:
    told = report(NOT_LOADED, only=("drv", "pci.*"), skip=("drv.taint",))
    assert told.left_out == sum(not id.startswith(("drv.", "pci.")) or id == "drv.taint" for id in IDS)
    assert set(told.results) == set(IDS)
    assert all(result.id.startswith(("drv.", "pci.")) for result in (*told.failures, *told.warnings))
    outcome = told.results["user.smi-works"].outcome
    assert outcome == NotApplicable("--only drv,pci.*", left_out=True)


def test_what_was_left_out_and_had_a_finding_says_what_it_found() -> None:
    outcome = report(NOT_LOADED, skip=("drv.module-loaded",)).results["drv.module-loaded"].outcome
    assert isinstance(outcome, NotApplicable)
    assert outcome.reason.startswith("--skip drv.module-loaded; it found (error): ")


@pytest.mark.parametrize("how", ["left out", "accepted"])
def test_a_cause_that_does_not_count_hides_nothing_that_follows_from_it(how: str) -> None:
    plain = report(NOT_LOADED)
    follow = {result.id for cause in plain.causes for result in plain.consequences(cause)}
    cause = "drv.module-loaded"
    assert cause in causes(plain)
    assert follow
    told = (
        report(NOT_LOADED, skip=(cause,))
        if how == "left out"
        else report(NOT_LOADED, Rules(acknowledge=(accept(cause),)))
    )
    shown = {*causes(told), *(result.id for one in told.causes for result in told.consequences(one))}
    assert shown == ({*causes(plain)} | follow) - {cause}


def test_an_error_that_the_spec_makes_a_warning_says_so() -> None:
    told = report(pending(ONE), Rules(severity=((PENDING, "warning"),)))
    finding = told.results[PENDING].outcome
    assert isinstance(finding, Finding)
    assert finding.weighed
    assert (finding.severity, finding.weighed.before, finding.weighed.by) == (
        Severity.WARNING, Severity.ERROR, "the spec",
    )  # fmt: skip
    assert finding.weighed.lowered
    assert PENDING in [result.id for result in told.warnings]


def test_the_severity_that_a_finding_has_already_is_no_change() -> None:
    finding = report(pending(ONE), Rules(severity=((PENDING, "error"),))).results[PENDING].outcome
    assert isinstance(finding, Finding)
    assert finding.weighed is None


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (h.host(init="chroot"), "image"),
        (h.READY, "hgx"),
        (h.host(pci=(h.GPU,)), "kubernetes"),
        (h.host(pci=(h.GPU,), kubernetes=KubernetesFacts()), "docker"),
        (
            replace(h.smi(replace(h.SEEN, name="NVIDIA GeForce RTX 4090 Laptop GPU")), pci=(h.GPU,),
                    kubernetes=KubernetesFacts()), "workstation",
        ),
        (h.host(pci=(), driver=DriverFacts(switch_management=("0000:07:00.0",))), "hgx"),
    ],
    ids=["no init", "NVSwitches", "a kubelet", "nothing special", "a laptop's GPU", "NVLink 5 switches"],
)  # fmt: skip
def test_the_profile_is_chosen_from_the_facts(host: HostFacts, name: str) -> None:
    assert fitting(host, load_catalog())[0] == name
    told = report(host)
    assert told.profile
    assert told.profile.name == name
    assert told.profile.why


def test_a_profile_weighs_and_leaves_out_with_its_reason() -> None:
    finding = report(SWITCH_LOST).results["pci.nvswitch-present"].outcome
    assert isinstance(finding, Finding)
    assert finding.weighed
    assert (finding.severity, finding.weighed.by) == (Severity.ERROR, "profile hgx")
    plain = report(SWITCH_LOST, Rules(profile="docker")).results["pci.nvswitch-present"]
    assert plain.found is Severity.WARNING
    image = report(NOT_LOADED, Rules(profile="image")).results["drv.module-loaded"].outcome
    assert isinstance(image, NotApplicable)
    assert image.reason.startswith("profile image: the GPUs")


def test_who_asks_for_a_check_by_name_gets_its_verdict_whatever_the_profile_says() -> None:
    id = "drv.module-loaded"
    for told in (
        report(NOT_LOADED, Rules(profile="image"), only=(id,)),
        report(NOT_LOADED, Rules(profile="image", severity=((id, "error"),))),
    ):
        assert id in [result.id for result in told.failures]


@pytest.mark.parametrize("name", profiles())
def test_a_profile_names_checks_that_there_are_and_leaves_no_healthy_host_with_a_finding(name: str) -> None:
    profile = profiles()[name]
    rows = [(one.check, one.reason) for one in profile.skip] + [(one.check, one.reason) for one in profile.weigh]
    for check, reason in rows:
        assert any(matches(id, check) for id in IDS), check
        assert reason
    told = report(h.READY, Rules(profile=name))
    assert not told.failures
    assert not told.warnings


@pytest.mark.parametrize(
    ("host", "rules", "accepts"),
    [
        (pending(ONE), [accept(PENDING)], True),
        (pending(ONE), [accept(PENDING, h.GPU.address)], True),
        (pending(ONE), [accept(PENDING, "GPU-1")], True),
        (pending(ONE), [accept(PENDING, "GPU-2")], False),
        (pending(ONE, TWO), [accept(PENDING, "GPU-1")], False),
        (pending(ONE, TWO), [accept(PENDING, "GPU-1"), accept(PENDING, TWO.pci_address)], True),
        (pending(ONE, TWO), [accept(PENDING, "GPU-1"), accept(PENDING, "GPU-2", PAST)], False),
        (pending(ONE), [accept(PENDING, expires=h.TODAY)], True),
        (pending(ONE), [accept(PENDING, expires=PAST)], False),
        (pending(ONE), [accept("drv.taint")], False),
    ],
    ids=[
        "whatever it is about", "its address", "its UUID", "another GPU", "one of two GPUs", "both GPUs",
        "both, one of them no more", "on its last day", "on the day after", "another check",
    ],
)  # fmt: skip
def test_a_finding_is_accepted_when_all_that_it_is_about_is(
    host: HostFacts, rules: list[Acknowledgement], accepts: bool
) -> None:
    told = report(host, Rules(acknowledge=tuple(rules)))
    assert ([result.id for result in told.acknowledged] == [PENDING]) is accepts
    assert (PENDING in [result.id for result in told.failures]) is not accepts
    assert (PENDING in causes(told)) is not accepts


def test_an_acknowledgement_that_ended_is_told_with_its_day() -> None:
    finding = report(pending(ONE), Rules(acknowledge=(accept(PENDING, expires=PAST),))).results[PENDING].outcome
    assert isinstance(finding, Finding)
    assert finding.acknowledged
    assert (finding.acknowledged.expires, finding.acknowledged.ended) == ("2026-05-31", True)


@pytest.mark.parametrize(
    ("host", "rule", "why"),
    [
        (h.READY, accept(PENDING), "the check passes"),
        (h.driver(smi=None), accept(PENDING), "no verdict: nvidia-smi was not run"),
        (pending(ONE), accept(PENDING, "GPU-2"), f"the finding is about {h.GPU.address}, GPU-1"),
        (pending(ONE, TWO), accept(PENDING, "GPU-2"), f"the finding is about {h.GPU.address}, 0000:61:00.0, GPU-1"),
    ],
    ids=["it passes", "it has no verdict", "it is about another GPU", "it is about more than that"],
)
def test_an_acknowledgement_that_accepts_nothing_is_told_with_the_reason(
    host: HostFacts, rule: Acknowledgement, why: str
) -> None:
    (said,) = report(host, Rules(acknowledge=(rule,))).idle
    assert said.startswith(f"{rule}: {why}")


def test_hosts_of_one_run_are_each_held_to_their_own_profile() -> None:
    """What a profile leaves out is looked for once for all hosts that have it, by the same rules, and for no other."""
    judgement, catalog = Judgement(Rules()), load_catalog()
    node, image = h.host(), replace(h.host(), init="chroot")

    def left_out(host: HostFacts, by: Judgement) -> set[str]:
        told = ruled(run_all(host, None, catalog, h.TODAY), by, catalog, h.TODAY)
        return {
            id for id, one in told.results.items() if isinstance(one.outcome, NotApplicable) and one.outcome.left_out
        }

    alone = [left_out(host, Judgement(Rules())) for host in (node, image)]
    assert alone[0] != alone[1]
    assert [left_out(host, judgement) for host in (node, image, node, image)] == alone * 2
