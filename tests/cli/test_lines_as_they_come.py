"""--format jsonl of a fleet: each host's line is on stdout as soon as that host has ended."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from gpunode.cli.hosts import look_at
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.results import Checked, each_line, finish
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.model.report import HostOutcome
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
