"""Active tests run where they were asked for, on hosts, while nobody works with the GPUs; else nothing is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.verbs.check_active import with_active
from gpunode.errors import UnsupportedHost
from gpunode.facts.wire import Section, Sections, encode
from gpunode.fleet.host import Host
from gpunode.model.active import ActiveTests
from gpunode.model.facts import HostFacts
from gpunode.model.spec import Spec
from gpunode.transport.base import Completed
from tests.checks import hosts as h

READY = str(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready")
SMOKE = ActiveTests(smoke=True)
WORK = h.driver(busy=("4242 python3", "900 nvidia-persiste"))


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["--smoke", "--recorded", READY], "--smoke is for hosts: a recording runs nothing"),
        (["--cuda", "--recorded", READY], "--cuda is for hosts"),
        (["--dcgm", "--list"], "--list and --dcgm exclude each other"),
        (["--smoke", "--explain", "smoke.cuda"], "--explain and --smoke exclude each other"),
        (["--smoke", "--npd"], "--npd and --smoke exclude each other"),
        (["--survive-reload", "--watch", "60"], "--watch and --survive-reload exclude each other"),
        (["--cuda", "--unit", "timer"], "--unit and --cuda exclude each other"),
        (["--allow-gpu-in-use"], "add --smoke, --survive-reload, --cuda or --dcgm"),
        (["--dcgm-level", "2"], "add --dcgm"),
        (["--smoke", "--dcgm-level", "2"], "--dcgm-level is for --dcgm"),
        (["--dcgm", "--dcgm-level", "5"], "from 1 to 4"),
    ],
)
def test_what_would_run_nothing_or_too_much_is_refused(
    typed: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *typed]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


class Asked:
    """A host that notes what it is asked to run."""

    target = "gpu07"

    def __init__(self) -> None:
        self.scripts: list[str] = []

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.scripts.append(script)
        return Completed(0, encode(Sections({"room": Section()})), b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def run(facts: HostFacts, tests: ActiveTests = SMOKE, *, in_use: bool = False) -> str:
    """The script that was run; "" for none."""
    host = Asked()
    with_active(Host(host), facts, Spec(), tests, in_use=in_use)
    return "".join(host.scripts)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (WORK, "4242 python3"),
        (replace(h.READY, unread={"busy": "did not answer within its limit"}), "did not answer"),
        (replace(h.READY, root=False), "need root"),
    ],
)
def test_nothing_is_run_while_programs_use_the_gpus_or_nobody_knows(facts: HostFacts, says: str) -> None:
    host = Asked()
    with pytest.raises(UnsupportedHost) as refused:
        with_active(Host(host), facts, Spec(), SMOKE, in_use=False)
    assert says in refused.value.problem + refused.value.evidence
    assert host.scripts == []


def test_who_allows_it_runs_them_while_programs_use_the_gpus() -> None:
    assert "trial 0 image docker" in run(WORK, in_use=True)


@pytest.mark.parametrize(
    ("tests", "call"),
    [
        (SMOKE, "gpunode_active 1 0 0 0 0 "),
        (ActiveTests(survive_reload=True), "gpunode_active 1 1 0 0 0 "),
        (ActiveTests(cuda=True), "gpunode_active 0 0 1 0 0 "),
        (ActiveTests(dcgm=2), "gpunode_active 0 0 0 2 900 "),
    ],
)
def test_only_what_was_asked_for_is_run(tests: ActiveTests, call: str) -> None:
    script = run(h.READY, tests)
    assert call in script
    assert ("\n  trial 0 image" in script) == tests.containers
