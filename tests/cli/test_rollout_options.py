"""The options of a rollout: what is refused before a host is asked, what they say before the question."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.rollout import RolloutOptions, WaveOptions
from gpunode.cli.verbs.setup_policy import policy, schedulers
from gpunode.cli.verbs.setup_rollout import Preparation
from gpunode.converge import HostRun
from gpunode.errors import ExitCode, UsageError
from gpunode.facts.collect import collect
from gpunode.fleet.host import Host
from gpunode.fleet.rollout.policy import NO_LIMIT, Policy, Share, limits
from gpunode.fleet.rollout.window import Window
from gpunode.fleet.rollout.words import rollout_words
from gpunode.model.plan import Kept, Plan
from gpunode.model.report import CheckReport, CheckResult, Finding, FleetReport, HostOutcome, Severity
from gpunode.model.rules import Acknowledgement, Rules
from gpunode.model.run_record import Controller, HostState, PastHost, PastRun, RunHeader
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.remedy import Remedy, RepairAction
from gpunode.specfile import SpecFile
from gpunode.transport.recorded import Recorded
from tests.fleet.rollout.fakes import PLAN, Fleet, Named, begins, done, names
from tests.fleet.rollout.stubs import Tools
from tests.site_checks.places import put, trusted_directory

HOST = "examples/hosts/ubuntu2404-hgx-h100"
RETRY = Remedy(RepairAction.WAIT, "look at it")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--canary", "1"], "--canary is for hosts over SSH"),
        (["--not-after", "22:00", "--recorded", HOST], "--not-after is for hosts over SSH"),
        (["--ssh", "a,b", "--canary", "0"], "--canary '0' is not a whole number"),
        (["--ssh", "a,b", "--batch", "0%"], "--batch '0%' is neither"),
        (["--ssh", "a,b", "--max-failures", "-1"], "--max-failures '-1' is neither"),
        (["--ssh", "a,b", "--on-host-error", "stopp"], "--on-host-error 'stopp' is not a choice"),
        (["--ssh", "a,b", "--on-host-error", "stop", "--max-failures", "1"], "exclude each other"),
        (["--ssh", "a,b", "--not-before", "soon"], "--not-before 'soon': it is no time"),
        (["--ssh", "a,b", "--max-reboots", "2"], "--max-reboots has no reboot to limit"),
        (["--ssh", "a,b", "--reboot-timeout", "1800"], "--reboot-timeout has no reboot to limit"),
        (["--ssh", "a,b", "--reboot", "if-needed", "--reboot-timeout", "0"], "--reboot-timeout '0' is not a whole"),
        (["--ssh", "a,b", "--drain-timeout", "60"], "--drain-timeout has no drain to limit"),
        (["--ssh", "a,b", "--delete-emptydir-data"], "--delete-emptydir-data is for --drain-kubernetes"),
        (["--ssh", "a,b", "--drain-slurm"], "--drain-slurm needs scontrol"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_would_be_ignored_or_means_nothing_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["setup", "--yes", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kind", ["missing", "empty", "a FIFO", "a directory"])
def test_a_kubeconfig_that_cannot_be_read_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Tools.make(tmp_path / "bin").directory))
    path = tmp_path / "config"
    if kind == "empty":
        path.touch()
    elif kind == "a FIFO":
        __import__("os").mkfifo(path)
    elif kind == "a directory":
        path.mkdir()
    with pytest.raises(UsageError, match="--drain-kubernetes"):
        schedulers(RolloutOptions(drain_kubernetes=path))


def test_who_drains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Tools.make(tmp_path / "bin").directory))
    monkeypatch.chdir(tmp_path)
    Path("config").write_text("x")
    found = schedulers(RolloutOptions(drain_kubernetes=Path("config"), drain_slurm=True, drain_timeout="5"))
    assert [scheduler.name for scheduler in found] == ["Kubernetes", "Slurm"]
    assert f"kubeconfig={tmp_path / 'config'!r}" in repr(found[0]), "kubectl is started elsewhere"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (WaveOptions(), Policy()),
        (WaveOptions(canary="2", batch="10%"), Policy(2, Share(10, percent=True))),
        (WaveOptions(on_host_error="stop"), Policy(max_failures=Share(0))),
        (WaveOptions(on_host_error="continue"), Policy(max_failures=NO_LIMIT)),
        (RolloutOptions(max_failures="0", max_reboots="3"), Policy(max_failures=Share(0), max_reboots=Share(3))),
        (RolloutOptions(reboot_timeout="1800"), Policy(reboot_wait_s=1800)),
    ],
)
def test_the_policy_that_was_typed(options: WaveOptions, wanted: Policy) -> None:
    assert policy(options) == wanted


NIGHT = Window(datetime(2026, 12, 1, 22, tzinfo=timezone.utc), datetime(2026, 12, 2, 6, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("wanted", "hosts", "reboots", "said"),
    [
        (Policy(), 1, True, ""),
        (Policy(), 0, True, ""),
        (Policy(), 3, False, "3 hosts side by side; failures do not stop it"),
        (Policy(), 30, True, "30 hosts side by side; failures do not stop it · at most 3 hosts reboot at once"),
        (
            Policy(2, Share(10, percent=True)),
            120,
            False,
            "2 canaries, then 10 batches of 12; a canary that fails or more than 12 failed hosts stops it",
        ),
        (
            Policy(1, max_failures=Share(0)),
            3,
            False,
            "1 canary, then 2 hosts after it; a canary that fails or the first failed host stops it",
        ),
        (
            Policy(window=NIGHT),
            1,
            True,
            "nothing begins before 2026-12-01 22:00 +0000 or from 2026-12-02 06:00 +0000 on",
        ),
    ],
)
def test_what_is_said_before_the_question(wanted: Policy, hosts: int, reboots: bool, said: str) -> None:
    assert rollout_words(limits(wanted, hosts), wanted.window, (), reboots=reboots) == said


def test_a_host_that_will_be_drained_is_planned_as_if_nothing_used_its_gpus(tmp_path: Path) -> None:
    host = Host(Recorded(Path(HOST, "facts.txt").read_bytes(), "gpu07"), recorded=True)
    facts = collect(host.transport)
    busy = type(facts)(
        **{**vars(facts), "driver": type(facts.driver)(**{**vars(facts.driver), "busy": ("7 python3",)})}
    )
    tools = Tools.make(tmp_path / "bin")
    from tests.fleet.rollout.test_drain import kubernetes

    assert Preparation(Policy()).seen(host, busy).driver.busy == ("7 python3",)
    assert Preparation(Policy(), (kubernetes(tools),)).seen(host, busy).driver.busy == ()


def test_the_waves_are_of_the_hosts_that_have_something_to_do() -> None:
    outcomes = [HostOutcome(name, ExitCode.DONE, plan=PLAN) for name in names(3)]
    report = FleetReport((HostOutcome("away", ExitCode.UNREACHABLE, problem="no answer"), *outcomes))
    rollout = Preparation(Policy(canary=1)).rollout([], report)
    assert rollout.waves == {"gpu01": 0, "gpu02": 1, "gpu03": 1}


@pytest.mark.parametrize(
    ("left", "wave"),
    [
        ({"reboot": "nouveau is loaded"}, None),
        ({"kept": (Kept("x", "x", by_hand="enrol the key"),)}, None),
        ({"reboot": "nouveau is loaded", "spec": Spec(reboot=RebootPolicy.IF_NEEDED)}, 0),
        ({"reboot": "a key waits", "console": "press it", "spec": Spec(reboot=RebootPolicy.IF_NEEDED)}, None),
        ({"steps": PLAN.steps}, 0),
    ],
    ids=["a reboot that waits", "a manual step", "a reboot of this run", "one at the console", "a step"],
)
def test_a_canary_is_a_host_on_which_something_is_done(left: dict[str, object], wave: int | None) -> None:
    plan = replace(PLAN, **{"steps": (), "reboot": None, "spec": Spec(), **left})  # type: ignore[arg-type]
    outcomes = (HostOutcome("gpu01", ExitCode.DONE, plan=plan), HostOutcome("gpu02", ExitCode.DONE, plan=PLAN))
    rollout = Preparation(Policy(canary=1)).rollout([], FleetReport(outcomes))
    assert rollout.waves.get("gpu01") == wave
    assert rollout.waves["gpu02"] == (0 if wave is None else 1)


def test_one_host_that_is_tried_again_is_held_against_what_it_was() -> None:
    host = Host(Recorded(Path(HOST, "facts.txt").read_bytes(), "gpu07"))
    failing = frozenset({("rt.docker-live", "")})
    about = RunHeader("id", "setup", "", "ann", Controller("c", 1), ("gpu07", "gpu08"))
    past = PastRun(about, (PastHost("gpu07", closed=("open it",), failing=failing), PastHost("gpu08", failing=failing)))
    other = SpecFile(Spec(), Rules(acknowledge=(Acknowledgement("rt.docker-live", "known", date(2999, 1, 1)),)))
    assert not Preparation.of(WaveOptions(), [host], lambda _: other, past).owing, "they were weighed by other rules"
    ready = Preparation.of(WaveOptions(), [host], lambda _: SpecFile(Spec(), Rules()), past)
    ready.seen(host, collect(host.transport))
    assert ready.before == {"gpu07": failing}
    assert ready.left_closed == (("gpu07", "open it"),)
    idle = FleetReport(
        (HostOutcome("gpu07", ExitCode.DONE, plan=replace(PLAN, target="gpu07", steps=(), reboot=None)),)
    )
    rollout = ready.rollout([host], idle)
    assert rollout.waves == {"gpu07": 0}, "what it owes is seen, though nothing is left to do"
    health = rollout.health
    assert health is not None
    assert set(health.owing) == {"gpu07"}


@pytest.mark.parametrize("well", [True, False])
@pytest.mark.parametrize(
    ("hosts", "reboot"), [(1, RebootPolicy.IF_NEEDED), (2, RebootPolicy.NEVER)], ids=["one host", "no reboots"]
)
def test_work_comes_back_to_a_drained_host_that_was_checked(
    hosts: int, reboot: RebootPolicy, well: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that all succeeded say nothing of how the host is: it is held against what it was."""
    tools = Tools.make(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tools.directory}:{os.environ['PATH']}")
    named = [Host(Recorded(Path(HOST, "facts.txt").read_bytes(), name)) for name in names(hosts)]
    ready = Preparation.of(RolloutOptions(drain_slurm=True), named, lambda _: SpecFile(Spec(reboot=reboot), Rules()))
    for host in named:
        ready.seen(host, collect(host.transport))
    slurms_name = ready.nodes["gpu01"].hostname.partition(".")[0]
    tools.set("state", f"NodeName={slurms_name} NodeHostName={slurms_name} State=IDLE\n")
    broken = CheckResult("rt.docker-live", Severity.ERROR, None if well else Finding("docker is down", "seen", RETRY))
    monkeypatch.setattr(Preparation, "check_now", lambda _, host: CheckReport(str(host), {broken.id: broken}))
    plans = [HostOutcome(name, ExitCode.DONE, plan=replace(PLAN, target=name)) for name in names(hosts)]
    fleet = Fleet(names(hosts))
    fleet.rollout = replace(ready.rollout(named, FleetReport(tuple(plans))), left_closed=())

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        begins(host_run)
        return done(host_run.transport.target)

    report = fleet.run(one, forks=1)
    assert [host.code for host in report.hosts] == [ExitCode.DONE if well else ExitCode.FAILED] * hosts
    assert tools.drained is not well
    assert {host for host, _ in fleet.rollout.closed} == (set() if well else {"gpu01"})


MAY_BE_AWAY = "gpu01 was at work in the interrupted run and may not be back from its reboot"


@pytest.mark.parametrize(
    ("state", "code", "options", "reboot", "why"),
    [
        (HostState.BEGUN, ExitCode.UNREACHABLE, RolloutOptions(), RebootPolicy.IF_NEEDED, MAY_BE_AWAY),
        (HostState.BEGUN, ExitCode.FAILED, RolloutOptions(), RebootPolicy.IF_NEEDED, ""),
        (HostState.BEGUN, ExitCode.UNREACHABLE, RolloutOptions(), RebootPolicy.NEVER, ""),
        (
            HostState.BEGUN,
            ExitCode.UNREACHABLE,
            RolloutOptions(canary="1"),
            RebootPolicy.NEVER,
            "the canary gpu01 failed",
        ),
        (
            HostState.BEGUN,
            ExitCode.UNREACHABLE,
            RolloutOptions(max_failures="0"),
            RebootPolicy.NEVER,
            "1 host failed, and --max-failures is 0",
        ),
        (HostState.WAITING, ExitCode.UNREACHABLE, RolloutOptions(canary="1"), RebootPolicy.IF_NEEDED, ""),
    ],
    ids=["maybe in its reboot", "it answers", "no reboots", "a canary", "a limit of failures", "it had not begun"],
)
def test_a_host_that_an_interrupted_run_left_at_work_and_that_is_away_counts_as_it_would_have_in_that_run(
    state: HostState, code: ExitCode, options: RolloutOptions, reboot: RebootPolicy, why: str
) -> None:
    hosts = [Host(Named(name)) for name in names(3)]
    header = RunHeader("id", "setup", "", "ann", Controller("c", 1), tuple(names(3)))
    past = PastRun(header, (PastHost("gpu01", state), PastHost("gpu02"), PastHost("gpu03")))
    ready = Preparation.of(options, hosts, lambda _: SpecFile(Spec(reboot=reboot), Rules()), past)
    away = HostOutcome("gpu01", code, problem="no answer")
    plans = [HostOutcome(name, ExitCode.DONE, plan=replace(PLAN, target=name)) for name in ("gpu02", "gpu03")]
    fleet = Fleet(["gpu02", "gpu03"])
    fleet.rollout = replace(ready.rollout(hosts, FleetReport((away, *plans))), health=None, left_closed=())
    report = fleet.run(lambda run, _: done(run.transport.target))
    assert [host.problem for host in report.hosts] == [why and f"not begun: {why}"] * 2
    assert ready.words(FleetReport((away, *plans)), fleet.rollout.gate.stopped).startswith(
        f"nothing begins: {why}" if why else ("1 canary" if options.canary else "3 hosts side by side")
    )


def test_an_acknowledgement_of_the_sites_own_check_stops_no_setup() -> None:
    """check knows it, so the check of each host before and after its run does; one that nobody has is said once."""
    hosts = [Host(Recorded(Path(HOST, "facts.txt").read_bytes(), name)) for name in ("gpu07", "gpu08")]
    with trusted_directory() as checks:
        put(checks, "gpu-memory.yaml", Path("examples/checks/gpu-memory.yaml").read_text())
        file = acknowledging(checks, "site.gpu-memory")
        ready = Preparation.of(WaveOptions(canary="1"), hosts, lambda _: file)
        ready.seen(hosts[0], collect(hosts[0].transport))
        assert "gpu07" in ready.before
        unknown = acknowledging(checks, "site.other")
        with pytest.raises(UsageError, match=r"site\.other"):
            Preparation.of(WaveOptions(canary="1"), hosts, lambda _: unknown)


def acknowledging(checks: Path, id: str) -> SpecFile:
    accepted = Acknowledgement(id, "known", date(2999, 1, 1))
    return SpecFile(Spec(site_checks=str(checks)), Rules(acknowledge=(accepted,)))


def test_a_shard_without_hosts_refuses_no_limit_of_reboots() -> None:
    ready = Preparation.of(RolloutOptions(max_reboots="1"), (), lambda _: SpecFile(Spec(), Rules()))
    assert ready.policy.max_reboots == Share(1)
