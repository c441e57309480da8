"""JUnit by the rules that its readers share: one suite a host, one case a check, whole whatever a host wrote."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

import pytest

from gpunode.errors import ExitCode
from gpunode.model.report import CheckReport, HostOutcome
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.junit import junit_xml
from tests.render.hostile import HOSTILE, SECRET, lost_outcome, odd_outcome
from tests.render.junit_rules import read_junit
from tests.render.values import CHECK, FOUND

GPU04 = HostOutcome("gpu04", ExitCode.FAILED, check=CHECK)
LOST = HostOutcome(
    "gpu05", ExitCode.UNREACHABLE, problem="no route", evidence="ssh says so", remedy=Remedy(RepairAction.NONE, "look")
)


def junit(*outcomes: HostOutcome, strict: bool = False) -> Element:
    return read_junit("".join(junit_xml(outcomes, seconds_s=3.14159, at_s=1_800_000_000, strict=strict)))


def case(root: Element, id: str) -> Element:
    (found,) = [c for c in root.iter("testcase") if c.get("name") == id]
    return found


def test_each_host_is_a_suite_with_its_counts() -> None:
    root = junit(GPU04, LOST)
    counts = [[s.get(n) for n in ("name", "tests", "failures", "errors", "skipped")] for s in root]
    assert counts == [["gpu04", "4", "1", "0", "1"], ["gpu05", "1", "0", "1", "0"]]
    assert [root.get(n) for n in ("tests", "failures", "errors", "time")] == ["5", "1", "1", "3.142"]
    assert {s.get("timestamp") for s in root} == {"2027-01-15T08:00:00"}


def test_a_pass_is_an_empty_case_of_its_group() -> None:
    found = case(junit(GPU04), "drv.loaded")
    assert (found.get("classname"), list(found)) == ("gpunode.drv", [])


def test_a_pass_that_found_something_says_so() -> None:
    told = HostOutcome("gpu04", ExitCode.DONE, check=CheckReport("gpu04", {FOUND.id: FOUND}))
    (said,) = case(junit(told), FOUND.id)
    assert (said.tag, said.text) == ("system-out", "evidence: 64 × performance")


def test_an_error_is_a_failure_with_evidence_and_remedy() -> None:
    (failure,) = case(junit(GPU04), "rt.effective-default")
    assert (failure.tag, failure.get("type")) == ("failure", "error")
    assert failure.get("message") == "containerd still runs with runc as its default"
    assert failure.text == 'evidence: defaultRuntimeName "runc"\nremedy: gpunode setup'


@pytest.mark.parametrize(("strict", "tag"), [(False, "system-out"), (True, "failure")], ids=["", "--strict"])
def test_a_warning_passes_and_says_so_or_fails_where_that_is_asked_for(strict: bool, tag: str) -> None:
    (found,) = case(junit(GPU04, strict=strict), "drv.dkms-next")
    assert found.tag == tag
    assert "the next boot has no module" in f"{found.text} {found.get('message')}"


def test_what_gave_no_verdict_is_skipped_with_its_reason() -> None:
    (skipped,) = case(junit(GPU04), "drv.mig")
    assert (skipped.tag, skipped.get("message")) == ("skipped", "no GPU has MIG")


def test_a_host_without_a_report_is_an_error_and_never_an_empty_suite() -> None:
    (error,) = case(junit(LOST), "report")
    assert (error.get("message"), error.get("type")) == ("no route", "exit-code-3")
    assert error.text == "evidence: ssh says so\nremedy: look"


@pytest.mark.parametrize("make", [odd_outcome, lost_outcome])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_host_writes_the_document_is_whole(text: str, make: object) -> None:
    root = junit(odd_outcome(text) if make is odd_outcome else lost_outcome(text), GPU04)
    assert len(root) == 2
    assert len(list(root[0])) == (4 if make is odd_outcome else 1)
    assert case(root, "rt.effective-default").get("classname") == "gpunode.rt"


def test_secrets_are_masked() -> None:
    text = "".join(junit_xml([odd_outcome(SECRET), lost_outcome(SECRET)], seconds_s=0, at_s=0, strict=True))
    assert "hunter2" not in text


BROKEN = {
    "count": '<testsuites name="x" tests="1" failures="0" errors="0"/>',
    "attribute": '<testsuites name="x" tests="0" failures="0" errors="0" colour="red"/>',
    "missing": '<testsuites name="x"/>',
    "child": '<testsuites name="x" tests="1" failures="0" errors="0"><testcase name="a" classname="b"/></testsuites>',
    "entity": "<testsuites>&bogus;</testsuites>",
    "control": '<testsuites name="\x01"/>',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_the_rules_refuse_what_is_broken(text: str) -> None:
    with pytest.raises((AssertionError, ParseError)):
        read_junit(text)
