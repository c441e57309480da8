"""A host that is not reached is an error once on stderr, and in the result; not once for every part of the run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.run.apply_plans import apply_plans
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.model.plan import Plan
from gpunode.model.report import FleetReport, HostOutcome
from gpunode.model.spec import Spec
from gpunode.transport.base import Completed


def test_hosts_that_are_not_reached_are_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = ("127.0.0.1:1", "127.0.0.2:1")  # tcpmux: no sshd listens there
    assert main(["detect", "--ssh", ",".join(nobody)]) == ExitCode.UNREACHABLE
    out, err = capsys.readouterr()
    assert (out + err).count("refuses connections") == len(nobody), err


@dataclass(eq=False)
class Named:
    """A host of which only the name counts."""

    target: str

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        raise AssertionError(f"{self.target} was asked")

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def test_applying_says_nothing_of_hosts_that_have_no_plan(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = (Host(Named("up1")), Host(Named("up2")), Host(Named("gone")))
    gone = HostOutcome("gone", ExitCode.UNREACHABLE, problem="gone: no answer within 10 s")
    planned = FleetReport((*(HostOutcome(n, ExitCode.DONE, plan=Plan(n, Spec(), "")) for n in ("up1", "up2")), gone))
    report = apply_plans(hosts, planned, LiveOptions(), OutputOptions())
    assert report.hosts[-1] == gone
    err = capsys.readouterr().err
    assert "up2  done" in err
    assert "no answer" not in err
