"""--format jsonl of a fleet: each line is on stdout as soon as there is one, and nobody's work waits for its reader."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpunode.cli.hosts import look_at
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.results import Checked, each_line, finish
from gpunode.cli.run.lines_as_they_come import LinesAsTheyCome
from gpunode.errors import ExitCode, UsageError
from gpunode.fleet.host import Host
from gpunode.model.report import FleetReport, HostOutcome
from gpunode.transport.recorded import Recorded
from tests.render.values import CHECK

JSONL = OutputOptions(format="jsonl")


def test_the_first_line_is_there_while_the_second_host_is_at_work(capsys: pytest.CaptureFixture[str]) -> None:
    printed = threading.Event()
    waited: list[bool] = []
    print_line = each_line("check", JSONL)
    assert print_line is not None

    def each(outcome: HostOutcome) -> None:
        print_line(outcome)
        printed.set()

    def work(host: Host) -> HostOutcome:
        if str(host) == "slow":
            waited.append(printed.wait(60))
        return HostOutcome(str(host), ExitCode.DONE, check=CHECK)

    hosts = tuple(Host(Recorded(b"", name), recorded=True) for name in ("slow", "quick"))
    report = look_at(hosts, LiveOptions(), JSONL, work, each)
    code = finish(Checked("check", report), JSONL, printed=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert waited == [True], "its line came with the last host's"
    assert [line["target"] for line in lines] == ["quick", "slow"]
    assert {line["schema"] for line in lines} == {"gpunode.check-result/2"}
    assert (code, [host.target for host in report.hosts]) == (ExitCode.DONE, ["slow", "quick"])


@pytest.mark.parametrize(
    "output",
    [OutputOptions(), OutputOptions(json=True), OutputOptions(format="jsonl", output=Path("x"))],
    ids=["text", "json", "a file"],
)
def test_any_other_result_is_shown_as_a_whole(output: OutputOptions) -> None:
    assert each_line("check", output) is None


class Stdout:
    """Whoever reads takes nothing until `reads` is set."""

    def __init__(self) -> None:
        self.reads, self.lines = threading.Event(), list[str]()

    def take(self, line: str) -> None:
        assert self.reads.wait(60)
        self.lines.append(line)


@pytest.fixture
def stdout(monkeypatch: pytest.MonkeyPatch) -> Stdout:
    out = Stdout()
    monkeypatch.setattr("gpunode.cli.run.lines_as_they_come.deliver", lambda line, _: out.take(line))
    return out


def test_no_host_waits_for_who_reads(
    stdout: Stdout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pager, a terminal that was stopped: events are in the run's log as well, results are nowhere else."""
    monkeypatch.setattr("gpunode.cli.run.lines_as_they_come.MOST_WAITING", 10)
    lines = LinesAsTheyCome(lambda outcome: outcome.target, JSONL)
    for number in range(30):
        lines.event(f"event {number}")
    for name in ("gpu01", "gpu02"):
        lines.ended(HostOutcome(name, ExitCode.DONE))
    assert stdout.lines == []
    stdout.reads.set()
    lines.finish(FleetReport((HostOutcome("gpu02", ExitCode.DONE), HostOutcome("gpu03", ExitCode.FAILED))))
    assert stdout.lines[-3:] == ["gpu01", "gpu02", "gpu03"]
    events = stdout.lines[:-3]
    assert events == [f"event {number}" for number in range(len(events))]
    assert 10 <= len(events) <= 11
    assert f"{30 - len(events)} events more than stdout took in time" in capsys.readouterr().err


TOLD = UsageError("stdout is full", evidence="e", remedy="r")


@pytest.mark.parametrize("error", [TOLD, ValueError("stdout is full")], ids=["told", "ours"])
def test_what_stdout_does_not_take_is_said_at_the_end(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def full(line: str, _: object) -> None:
        taken.append(line)
        raise error

    monkeypatch.setattr("gpunode.cli.run.lines_as_they_come.deliver", full)
    lines = LinesAsTheyCome(lambda outcome: outcome.target, JSONL)
    lines.event("one")
    lines.event("two")
    with pytest.raises(type(error), match="stdout is full"):
        lines.finish(FleetReport((HostOutcome("gpu01", ExitCode.DONE),)))
    assert taken == ["one"]


STALLED = """
import sys
from gpunode.cli.options.groups import OutputOptions
from gpunode.cli.run.lines_as_they_come import LinesAsTheyCome
from gpunode.model.report import FleetReport
lines = LinesAsTheyCome(lambda outcome: "", OutputOptions(format="jsonl"))
for _ in range(1000):
    lines.event("x" * 1000)
sys.stderr.write("waits\\n")
sys.stderr.flush()
lines.finish(FleetReport())
"""


def test_ctrl_c_ends_the_wait_for_who_reads() -> None:
    """Python's own end would wait for the writer, which waits for the pipe."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    argv = (sys.executable, "-c", STALLED)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"waits\n"
        time.sleep(1)  # it is in the wait
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert b"not all of the result was read" in process.stderr.read()
