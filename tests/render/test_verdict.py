"""One line and one number: bounded in bytes, whole in its characters, and never a wrong alarm for what is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.errors import ExitCode
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.remedy import NO_REMEDY
from gpunode.render.verdict import NHC_BYTES, NPD_BYTES, fitted, verdict
from tests.render.hostile import HOSTILE, SECRET, lost_outcome, odd_outcome
from tests.render.values import CHECK

FAILING = HostOutcome("gpu04", ExitCode.FAILED, check=CHECK)


def without(*ids: str) -> HostOutcome:
    return replace(FAILING, check=replace(CHECK, results={i: r for i, r in CHECK.results.items() if i not in ids}))


WARNED = without("rt.effective-default")
HEALTHY = without("rt.effective-default", "drv.dkms-next")
NO_GPU = CheckResult("drv.loaded", Severity.ERROR, NotApplicable("no GPU"))
OWN = CheckResult("sec.cve-db-age", Severity.WARNING, None)
ANYWHERE = [CheckResult(id, Severity.ERROR, None) for id in ("os.mirror-sync", "ctk.legacy-packages", "fleet.clock")]


def ended(*results: CheckResult) -> HostOutcome:
    return HostOutcome("h", ExitCode.DONE, check=CheckReport("h", {r.id: r for r in results}))


NOT_ASKED = replace(NO_GPU, outcome=NotApplicable("--only os", left_out=True))


def because_of(cause: str, *consequences: str) -> HostOutcome:
    """Errors, of which the first explains the others."""
    found = {cause: Finding(cause, "", NO_REMEDY, consequences=consequences)}
    found |= {id: Finding(id, "", NO_REMEDY, cause=cause) for id in consequences}
    results = {id: CheckResult(id, Severity.ERROR, finding) for id, finding in found.items()}
    return HostOutcome("h", ExitCode.FAILED, check=CheckReport("h", results))


@pytest.mark.parametrize(
    ("outcome", "strict", "code", "said"),
    [
        (HEALTHY, False, 0, "1 check passes"),
        (WARNED, False, 0, "1 check passes, 1 warning"),
        (WARNED, True, 1, "drv.dkms-next: the next boot has no module"),
        (FAILING, False, 1, "rt.effective-default: containerd still runs with runc as its default"),
        (FAILING, True, 1, "rt.effective-default: containerd still runs with runc as its def... (and 1 more)"),
        (ended(NO_GPU, OWN), False, 2, "no verdict: no check of a GPU, driver or engine applies here"),
        (ended(NO_GPU, OWN, *ANYWHERE), False, 2, "no verdict: no check of a GPU, driver or engine applies here"),
        (ended(NOT_ASKED, OWN, *ANYWHERE), False, 0, "4 checks pass"),
        (ended(NOT_ASKED, OWN), False, 2, "no verdict: no check of a GPU, driver or engine applies here"),
        (because_of("pci.gpu-present", "drv.loaded", "rt.default"), False, 1, "pci.gpu-present: pci.gpu-present"),
        (lost_outcome("no route"), True, 2, "no verdict: no route"),
    ],
    ids=[
        "healthy",
        "warned",
        "warned, strict",
        "failing",
        "failing and warned, strict",
        "nothing applies",
        "what passes on any host",
        "what passes on any host, and nothing else was asked for",
        "asked for gpunode's own tables",
        "a cause",
        "not read",
    ],
)
def test_the_code_and_the_line(outcome: HostOutcome, strict: bool, code: int, said: str) -> None:
    assert verdict(outcome, strict=strict, most=NPD_BYTES) == (code, said)


@pytest.mark.parametrize("most", [NPD_BYTES, NHC_BYTES])
@pytest.mark.parametrize("lead", ["", "gpunode: "])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_host_writes_it_is_one_line_that_fits(text: str, lead: str, most: int) -> None:
    for outcome, code in ((odd_outcome(text), 1), (lost_outcome(text), 2)):
        answered, line = verdict(outcome, strict=True, most=most, lead=lead)
        assert answered == code
        assert line.startswith(lead)
        assert len(line.encode()) <= most
        assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "most", "end", "shown"),
    [
        ("abcdef", 6, "", "abcdef"),
        ("abcdefg", 6, "", "abc..."),
        ("aéé", 5, "", "aéé"),
        ("aééé", 6, "", "aé..."),
        ("a🙂🙂", 8, "", "a🙂..."),
        ("abcdef", 8, "+1", "abcdef+1"),
        ("abcdefg", 8, "+1", "abc...+1"),
    ],
)
def test_a_line_is_cut_between_characters(text: str, most: int, end: str, shown: str) -> None:
    assert fitted(text, most, end) == shown
    assert len(shown.encode()) <= most


def test_a_secret_is_masked() -> None:
    assert "hunter2" not in verdict(odd_outcome(SECRET), strict=False, most=NHC_BYTES)[1]
