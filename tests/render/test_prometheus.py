"""Metrics that a collector takes: whole whatever a host is called, with names and values that alerts rely on."""

from __future__ import annotations

import pytest

from gpunode.errors import ExitCode
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts
from gpunode.model.report import CheckReport, HostOutcome
from gpunode.render.prometheus import prometheus_text
from tests.render.exposition import Samples, read_metrics
from tests.render.hostile import HOSTILE, SECRET, lost_outcome, odd_outcome
from tests.render.values import CHECK

GPU04 = HostOutcome("gpu04", ExitCode.FAILED, check=CHECK)
LOST = HostOutcome("gpu05", ExitCode.UNREACHABLE, problem="no route to host")


def metrics(*outcomes: HostOutcome) -> Samples:
    return read_metrics("".join(prometheus_text(outcomes, seconds_s=3.14159, at_s=1_800_000_000.25)))


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


@pytest.mark.parametrize(
    ("id", "status"), [("drv.loaded", 0), ("drv.dkms-next", 1), ("rt.effective-default", 2), ("drv.mig", -1)]
)
def test_each_check_has_its_status(id: str, status: int) -> None:
    assert value(metrics(GPU04, LOST), "gpunode_check_status", id=id, host="gpu04") == status


def test_a_host_without_a_report_is_there_and_has_no_status() -> None:
    samples = metrics(GPU04, LOST)
    assert [value(samples, "gpunode_host_checked", host=h) for h in ("gpu04", "gpu05")] == [1, 0]
    assert [value(samples, "gpunode_check_exit_code", host=h) for h in ("gpu04", "gpu05")] == [1, 3]
    assert not [labels for name, labels in samples if name == "gpunode_check_status" and ("host", "gpu05") in labels]


@pytest.mark.parametrize(("outcome", "number"), [("pass", 1), ("warning", 1), ("error", 1), ("not-applicable", 1)])
def test_checks_are_counted_by_outcome(outcome: str, number: int) -> None:
    assert value(metrics(GPU04), "gpunode_checks", host="gpu04", outcome=outcome) == number


def test_the_run_has_its_time() -> None:
    samples = metrics(GPU04)
    assert value(samples, "gpunode_last_check_timestamp_seconds") == 1_800_000_000.25
    assert value(samples, "gpunode_last_check_duration_seconds") == 3.142


def test_this_machine_has_its_own_name() -> None:
    facts = HostFacts("localhost", "gpu07", OsFacts("debian", "12"), KernelFacts("6.1"), True)
    here = HostOutcome("localhost", ExitCode.DONE, check=CheckReport("localhost", CHECK.results, facts, local=True))
    assert value(metrics(here), "gpunode_check_status", id="drv.loaded", host="gpu07") == 0


def test_another_host_that_is_called_localhost_keeps_that_name() -> None:
    facts = HostFacts("localhost", "gpu07", OsFacts("debian", "12"), KernelFacts("6.1"), True)
    recorded = HostOutcome("localhost", ExitCode.DONE, check=CheckReport("localhost", CHECK.results, facts))
    assert value(metrics(recorded), "gpunode_check_status", id="drv.loaded", host="localhost") == 0


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_host_is_called_the_file_is_whole(text: str) -> None:
    samples = metrics(odd_outcome(text), GPU04)
    mine = [dict(labels)["host"] for name, labels in samples if name == "gpunode_check_status"]
    assert len(mine) == 8
    assert len(set(mine)) == 2
    assert not any(set(host) & set("\n\x1b\x00\ufffe\u202e") for host in mine)
    assert value(samples, "gpunode_check_status", id="drv.loaded", host="gpu04") == 0


@pytest.mark.parametrize("order", [1, -1], ids=["lost last", "lost first"])
def test_two_hosts_that_show_alike_are_one_sample_and_the_worse_one(order: int) -> None:
    alike = (odd_outcome("a\x01b"), lost_outcome("a\\x01b"))[::order]
    samples = metrics(*alike)
    assert value(samples, "gpunode_host_checked", host="a\\x01b") == 0


@pytest.mark.parametrize("order", [1, -1], ids=["well last", "well first"])
@pytest.mark.parametrize("code", [ExitCode.FAILED, ExitCode.WARNINGS])
def test_of_two_reports_of_hosts_that_show_alike_the_worse_one_counts(code: ExitCode, order: int) -> None:
    bad = HostOutcome("a\x01b", code, check=CHECK)
    well = HostOutcome("a\\x01b", ExitCode.DONE, check=CheckReport("a\\x01b"))
    samples = metrics(*(bad, well)[::order])
    assert value(samples, "gpunode_check_exit_code", host="a\\x01b") == code
    assert value(samples, "gpunode_check_status", id="drv.loaded", host="a\\x01b") == 0


def test_no_host_at_all_leaves_out_what_would_be_empty() -> None:
    text = "".join(prometheus_text((), seconds_s=0, at_s=0))
    metric = {"gpunode_info", "gpunode_last_check_timestamp_seconds", "gpunode_last_check_duration_seconds"}
    assert {row.split()[2] for row in text.splitlines() if row.startswith("#")} == metric
    assert {name for name, _ in read_metrics(text)} == metric


def test_a_secret_in_a_name_is_masked() -> None:
    assert "hunter2" not in "".join(prometheus_text([odd_outcome(SECRET)], seconds_s=0, at_s=0))


BROKEN = {
    "no end of line": "a 1",
    "no type": "# HELP a b\na 1\n",
    "no help": "# TYPE a gauge\na 1\n",
    "twice": "# HELP a b\n# TYPE a gauge\na 1\na 2\n",
    "apart": '# HELP a b\n# TYPE a gauge\n# HELP c d\n# TYPE c gauge\na 1\nc 1\na{x="1"} 1\n',
    "quote": '# HELP a b\n# TYPE a gauge\na{x="""} 1\n',
    "escape": '# HELP a b\n# TYPE a gauge\na{x="\\x"} 1\n',
    "empty line": "# HELP a b\n\n# TYPE a gauge\na 1\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_the_reader_refuses_what_the_format_refuses(text: str) -> None:
    with pytest.raises(AssertionError):
        read_metrics(text)
