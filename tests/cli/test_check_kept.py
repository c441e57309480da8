"""What a check over several hosts holds of each until all have ended: no facts, and what hosts have alike once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.cli.verbs.check_fleet import Kept
from gpunode.cli.verbs.check_host import checked
from gpunode.errors import ExitCode
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.model.alike import Alike
from gpunode.model.report import CheckReport, CheckResult, HostOutcome, NotApplicable, Severity
from gpunode.model.spec import Spec
from gpunode.render.check_text import fleet_check_text
from gpunode.render.junit import junit_xml
from gpunode.render.machine import host_line, hosts_json, line_rows
from gpunode.render.matrix.page import matrix_html
from gpunode.render.nvsentinel import health_events
from gpunode.render.prometheus import prometheus_text
from gpunode.render.style import PLAIN
from gpunode.transport.recorded import Recorded

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
SLUGS = ("ubuntu2404-hgx-h100-ready", "debian12-ready", "rocky9-reset-required-a100")
AT_S = 1_795_651_200.0


@pytest.fixture(scope="module")
def outcomes() -> tuple[HostOutcome, ...]:
    """Two hosts that are alike, others, this machine, and one that gave no report."""
    names = {"gpu01": SLUGS[0], "gpu02": SLUGS[0], "gpu03": SLUGS[1], "localhost": SLUGS[2]}
    hosts = (
        Host(Recorded(load_recording(EXAMPLES / slug), name), recorded=True, local=name == "localhost")
        for name, slug in names.items()
    )
    return (*(checked(host, Spec(), False) for host in hosts), HostOutcome("gpu09", ExitCode.UNREACHABLE, problem="x"))


def _lines(hosts: Sequence[HostOutcome], kept: Kept) -> str:
    rows = line_rows()
    return "".join(host_line("check", host, rows) for host in hosts)


Render = Callable[[Sequence[HostOutcome], Kept], str]
FORMATS: dict[str, Render] = {
    "text": lambda hosts, kept: fleet_check_text(hosts, replace(PLAIN, verbose=1), seconds_s=3.1, ssh=True),
    "json": lambda hosts, kept: "".join(hosts_json("check", hosts, seconds_s=3.1)),
    "jsonl": _lines,
    "junit": lambda hosts, kept: "".join(junit_xml(hosts, seconds_s=3.1, at_s=AT_S, strict=True)),
    "prometheus": lambda hosts, kept: "".join(prometheus_text(hosts, seconds_s=3.1, at_s=AT_S)),
    "nvsentinel": lambda hosts, kept: "".join(health_events(hosts, at_s=AT_S)),
    "html": lambda hosts, kept: matrix_html(hosts, kept.sights, at_s=AT_S, seconds_s=3.1, ssh=True),
}


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_the_same_without_the_facts(form: str, outcomes: tuple[HostOutcome, ...]) -> None:
    kept = Kept(page=form == "html")
    lean = tuple(map(kept.outcome, outcomes))
    assert all(one.check is None or one.check.facts is None for one in lean)
    assert FORMATS[form](lean, kept) == FORMATS[form](outcomes, Kept())


def test_hosts_that_are_alike_share_their_results(outcomes: tuple[HostOutcome, ...]) -> None:
    kept = Kept(page=True)
    first, second = (kept.outcome(one).check for one in outcomes[:2])
    assert first is not None
    assert second is not None
    assert all(one is other for one, other in zip(first.results.values(), second.results.values(), strict=True))
    assert kept.compared["gpu01"].versions == kept.compared["gpu02"].versions
    assert kept.sights["gpu01"] is kept.sights["gpu02"]


def test_what_differs_in_its_evidence_alone_is_not_shared() -> None:
    def of(seen: str) -> CheckReport:
        return CheckReport("h", {"a.b": CheckResult("a.b", Severity.ERROR, None, evidence=seen)})

    alike = Alike()
    assert [alike.report(of(seen)).results["a.b"].evidence for seen in ("1", "2", "1")] == ["1", "2", "1"]


def test_a_report_that_is_shared_reads_as_one_that_is_not() -> None:
    results = {
        "b.c": CheckResult("b.c", Severity.WARNING, NotApplicable("why")),
        "a.b": CheckResult("a.b", Severity.ERROR, None),
    }
    shared = Alike().report(CheckReport("h", results)).results
    assert (list(shared), list(shared.items()), len(shared)) == (list(results), list(results.items()), 2)
    assert shared == results
    assert "x.y" not in shared
    assert list(shared.values()) == list(results.values())


@pytest.mark.parametrize("different", [0, 1, 16, 17, 40])
def test_each_host_keeps_its_own_results_however_many_differ(different: int) -> None:
    def of(host: str) -> CheckReport:
        own = (host if number < different else "" for number in range(40))
        return CheckReport(
            host, {f"a.{n:02}": CheckResult(f"a.{n:02}", Severity.ERROR, None, evidence=e) for n, e in enumerate(own)}
        )

    alike, reports = Alike(), [of(host) for host in ("h1", "h2", "h3", "h2", "h1")]
    for report, shared in zip(reports, [alike.report(report) for report in reports], strict=True):
        theirs = [one.evidence for one in report.results.values()]
        assert [one.evidence for one in shared.results.values()] == theirs
        assert [shared.results[id].evidence for id in report.results] == theirs


def test_more_results_than_are_remembered_are_written_all_the_same() -> None:
    report = CheckReport("h", {f"a.{n}": CheckResult(f"a.{n}", Severity.ERROR, None) for n in range(5000)})
    line = json.loads(host_line("check", HostOutcome("h", ExitCode.DONE, check=report), line_rows()))
    assert [row["id"] for row in line["checks"]] == list(report.results)
