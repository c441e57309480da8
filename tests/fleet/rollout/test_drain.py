"""Nodes are drained before what disturbs them and let back afterwards, by real programs that a test wrote."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.advice import typed
from gpunode.converge import HostRun
from gpunode.errors import Drift, ExitCode, HostBusy, HostLocked, StepFailed, TransportError
from gpunode.fleet.rollout.disruption import disruption
from gpunode.fleet.rollout.drain import Closed, NodeIdentity, Scheduler
from gpunode.fleet.rollout.kubernetes_node import Kubernetes
from gpunode.fleet.rollout.policy import Policy, Share
from gpunode.fleet.rollout.slurm_node import Slurm
from gpunode.model.action import Run
from gpunode.model.plan import MIG_STEP, Plan, Step
from gpunode.model.report import Event, HostOutcome, Untouched
from gpunode.model.spec import RebootPolicy, Spec
from tests.fleet.rollout.fakes import PLAN, Fleet, Lock, begins, done, names, reboot
from tests.fleet.rollout.stubs import Tools

NODE = NodeIdentity("gpu01", "gpu01.example", "gpu01", "boot-of-gpu01")


# kubectl 1.33, of a pod whose budget allows no disruption.
SAID_BY_KUBECTL = """\
evicting pod default/web
error when evicting pods/"web" -n "default" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.
evicting pod default/web
error when evicting pods/"web" -n "default" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.
There are pending nodes to be drained:
 gpu01
error when evicting pods/"web" -n "default": global timeout reached: 3s
"""  # noqa: E501


def drain(scheduler: Scheduler, node: NodeIdentity = NODE) -> tuple[str, ...]:
    """Both halves; the command that reopens it, () where it was closed before."""
    noted: list[tuple[str, ...]] = []
    closed = scheduler.close(node, noted.append)
    assert noted == ([] if closed.before else [closed.reopen])
    scheduler.clear(node, closed, lambda: False)
    return () if closed.before else closed.reopen


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    tools = Tools.make(tmp_path / "bin $(touch x)")
    tools.node("boot-of-gpu01")
    tools.set("state", "NodeName=gpu01 NodeHostName=gpu01 State=IDLE ThreadsPerCore=1\n")
    return tools


def kubernetes(tools: Tools, *, timeout_s: int = 60, emptydir: bool = False) -> Kubernetes:
    return Kubernetes(tools.path("kubectl"), Path("/etc/a b;c"), timeout_s, emptydir)


def slurm(tools: Tools, *, timeout_s: int = 60) -> Slurm:
    clock = iter(range(0, 10_000, 20))
    return Slurm(
        tools.path("scontrol"), tools.path("squeue"), timeout_s, pause=lambda _: None, clock=lambda: float(next(clock))
    )


def test_a_node_is_cordoned_drained_by_eviction_and_uncordoned(tools: Tools) -> None:
    cluster = kubernetes(tools)
    back = drain(cluster)
    assert tools.cordoned
    assert cluster.reopen(back) == ""
    assert not tools.cordoned
    assert all(call[:2] == ["--kubeconfig", "/etc/a b;c"] for call in tools.calls), "one argument, whatever is in it"
    assert [call[2:4] for call in tools.calls] == [
        ["get", "node"],
        ["cordon", "gpu01"],
        ["drain", "gpu01"],
        ["uncordon", "gpu01"],
    ]
    assert tools.calls[2][4:] == ["--ignore-daemonsets", "--timeout=60s"], "nothing that goes past a budget"
    assert not list(tools.directory.glob("x"))


def test_emptydirs_are_lost_only_where_that_was_asked_for(tools: Tools) -> None:
    drain(kubernetes(tools, emptydir=True))
    assert "--delete-emptydir-data" in tools.calls[2]


def test_a_node_that_was_cordoned_before_stays_cordoned(tools: Tools) -> None:
    tools.node("boot-of-gpu01", cordoned=True)
    assert drain(kubernetes(tools)) == ()
    assert [call[2] for call in tools.calls] == ["get", "drain"]
    tools.set("drain-fails", "error")
    with pytest.raises(HostBusy):
        drain(kubernetes(tools))
    assert tools.cordoned


def test_a_drain_that_a_budget_stops_says_so_once(tools: Tools) -> None:
    tools.set("drain-fails", SAID_BY_KUBECTL)
    with pytest.raises(HostBusy, match="cannot be drained") as refused:
        drain(kubernetes(tools))
    assert refused.value.evidence.count("would violate the pod's disruption budget") == 1
    assert "global timeout reached" in refused.value.evidence
    assert "pending nodes" not in refused.value.evidence


def test_a_drain_without_an_end_is_ended(tools: Tools) -> None:
    tools.set("drain-waits")
    with pytest.raises(HostBusy) as refused:
        drain(kubernetes(tools, timeout_s=-29))  # thirty more are kubectl's own
    assert "did not end within 1 s" in refused.value.evidence


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (replace(NODE, boot_id="boot-of-another"), "is not known to be this host"),
        (replace(NODE, boot_id=None), "is not known to be this host"),
        (replace(NODE, node_name="--all"), "its name is no name of a node"),
        (replace(NODE, node_name=None, hostname="gpu01 gpu02"), "its name is no name of a node"),
        (replace(NODE, node_name=None, hostname=""), "its name is no name of a node"),
    ],
    ids=["the same name in another cluster", "not known", "an option", "two names", "no name"],
)
def test_no_node_is_drained_that_may_be_another_machine(tools: Tools, node: NodeIdentity, said: str) -> None:
    with pytest.raises(HostBusy, match=said):
        drain(kubernetes(tools), node)
    assert all(call[2] == "get" for call in tools.calls)


def test_a_host_that_is_no_node_of_the_cluster_is_skipped(tools: Tools) -> None:
    (tools.directory / "node").unlink()
    with pytest.raises(HostBusy, match="leads to no node gpu01") as refused:
        drain(kubernetes(tools))
    assert "NotFound" in refused.value.evidence


def test_a_node_of_slurms_is_drained_until_its_jobs_have_ended_and_resumed(tools: Tools) -> None:
    tools.set("jobs", "17 18\n18\n")
    cluster = slurm(tools)
    back = drain(cluster)
    assert tools.drained
    assert (tools.directory / "jobs").read_text() == ""
    assert cluster.reopen(back) == ""
    assert not tools.drained
    assert tools.calls == [
        ["show", "node", "gpu01", "--oneliner"],
        ["update", "NodeName=gpu01", "State=DRAIN", "Reason=gpunode sets it up"],
        ["update", "NodeName=gpu01", "State=RESUME"],
    ]


@pytest.mark.parametrize(
    ("state", "closed"),
    [
        ("IDLE+DRAIN", True),
        ("DOWN", True),
        ("DOWN*", True),
        ("DOWN+NOT_RESPONDING", True),
        ("IDLE+FAIL", True),
        ("MIXED+FAIL+COMPLETING", True),
        ("MIXED+PLANNED", False),
        ("IDLE+CLOUD+POWERED_DOWN", False),
        ("IDLE+POWER_DOWN", False),
    ],
)
def test_a_node_of_slurms_that_was_closed_before_stays_closed(tools: Tools, state: str, *, closed: bool) -> None:
    """RESUME would put it back to work, and DRAIN writes over the reason why it is down."""
    tools.set("state", f"NodeName=gpu01 NodeHostName=gpu01 State={state} Reason=bad_DIMM\n")
    assert (drain(slurm(tools)) == ()) is closed
    assert [call[0] for call in tools.calls] == (["show"] if closed else ["show", "update"])


def test_a_node_that_gpunode_drained_and_that_slurm_set_down_is_resumed(tools: Tools) -> None:
    """slurmctld does so with one that it does not expect to reboot, or that is away for too long."""
    tools.set("state", "NodeName=gpu01 NodeHostName=gpu01 State=DOWN+DRAIN\n")
    resume = typed(tools.path("scontrol"), "update", "NodeName=gpu01", "State=RESUME")
    fleet = Fleet(names(1), schedulers=(slurm(tools),), left_closed=(("gpu01", resume),))
    fleet.run(lambda run, _: done(run.transport.target))
    assert tools.calls[-1] == ["update", "NodeName=gpu01", "State=RESUME"]
    assert fleet.rollout.closed == ()


def test_jobs_that_do_not_end_in_time_keep_their_node(tools: Tools) -> None:
    tools.set("jobs", "17\n" * 50)
    with pytest.raises(HostBusy, match="jobs of Slurm's are at work on gpu01") as refused:
        drain(slurm(tools))
    assert "still there: job 17" in refused.value.evidence


@pytest.mark.parametrize(
    ("state", "hostname", "said"),
    [
        (None, "gpu01", "does not show a node"),
        ("NodeName=gpu01 NodeHostName=other State=IDLE", "gpu01", "is another host"),
        ("NodeName=gpu01 State=IDLE", "gpu[01-99]", "no name of a node"),
        ("NodeName=gpu01 State=IDLE", "ALL,x", "no name of a node"),
        ("nonsense", "gpu01", "does not show a node"),
    ],
)
def test_no_other_node_of_slurms_is_drained(tools: Tools, state: str | None, hostname: str, said: str) -> None:
    (tools.directory / "state").unlink() if state is None else tools.set("state", state)
    with pytest.raises(HostBusy, match=said):
        drain(slurm(tools), replace(NODE, hostname=hostname))
    assert all(call[0] == "show" for call in tools.calls)


OK = Run(("true",))
RESTARTS = Run(("systemctl", "restart", "docker"), restarts="docker.service")


@pytest.mark.parametrize(
    ("plan", "disturbs"),
    [
        (PLAN, True),
        (replace(PLAN, spec=Spec(reboot=RebootPolicy.NEVER), steps=()), False),
        (replace(PLAN, reboot=None), True),
        (replace(PLAN, reboot=None, steps=(Step("docker.default", "t", "w", (OK,)),)), False),
        (replace(PLAN, reboot=None, steps=(Step("docker.default", "t", "w", (RESTARTS,)),)), False),
        (
            replace(
                PLAN,
                reboot=None,
                spec=Spec(allow_container_restart=True),
                steps=(Step("docker.default", "t", "w", (RESTARTS,)),),
            ),
            True,
        ),
        (replace(PLAN, reboot=None, steps=(Step(MIG_STEP, "t", "w", (OK,)),)), True),
    ],
    ids=["a reboot", "one that is left", "a driver", "a reload", "containers stay", "containers may stop", "MIG"],
)
def test_what_disturbs_the_work_on_a_host(plan: Plan, disturbs: bool) -> None:
    assert bool(disruption(plan)) is disturbs


def one_host(tools: Tools, **changes: object) -> Fleet:
    return Fleet(names(1), schedulers=(kubernetes(tools),), **changes)  # type: ignore[arg-type]


def test_a_host_is_set_up_while_it_is_drained_and_takes_work_again(tools: Tools) -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        begins(host_run)
        assert reboot(host_run) == ""
        seen.append(tools.cordoned)
        return done(host_run.transport.target)

    seen: list[bool] = []
    fleet = one_host(tools)
    assert fleet.run(one).hosts[0].code is ExitCode.DONE
    assert (seen, tools.cordoned, fleet.rollout.closed) == ([True], False, ())


def test_a_host_that_nothing_disturbs_is_not_drained(tools: Tools) -> None:
    quiet = replace(PLAN, reboot=None, steps=(Step("docker.default", "t", "w", (OK,)),))
    assert one_host(tools, plan=quiet).run(lambda run, _: done(run.transport.target)).hosts[0].code is ExitCode.DONE
    assert tools.calls == []


@pytest.mark.parametrize("how", ["it failed", "it still has to reboot"])
def test_a_host_that_is_not_well_takes_no_work_and_the_command_is_named(tools: Tools, how: str) -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        begins(host_run)
        if how == "it failed":
            raise StepFailed("no")
        outcome = done(host_run.transport.target, code=ExitCode.REBOOT_NEEDED)
        assert outcome.run is not None
        return replace(outcome, run=replace(outcome.run, reboot="nouveau is loaded"))

    fleet = one_host(tools)
    fleet.run(one)
    assert tools.cordoned
    assert [(host, command.endswith("uncordon gpu01")) for host, command in fleet.rollout.closed] == [("gpu01", True)]
    assert any("stays closed to work" in event.text for event in fleet.events)


def test_a_host_that_was_not_touched_after_all_takes_work_again(tools: Tools) -> None:
    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        raise Drift("gpu01: it changed since its plan was shown")

    fleet = one_host(tools)
    assert fleet.run(one).hosts[0].code is ExitCode.DRIFT
    assert (tools.cordoned, fleet.rollout.closed) == (False, ())


def test_a_host_that_cannot_be_drained_is_skipped_with_the_reason(tools: Tools) -> None:
    tools.set("drain-fails", "error when evicting pods: budget\n")
    report = one_host(tools).run(lambda run, _: done("never called", code=ExitCode.FAILED))
    assert (report.hosts[0].untouched, report.hosts[0].code) == (Untouched.SKIPPED, ExitCode.UNSUPPORTED)
    assert "budget" in report.hosts[0].evidence
    assert not tools.cordoned, "it is as it was"


def test_a_node_that_could_not_be_reopened_is_named_with_the_command(tools: Tools) -> None:
    tools.set("drain-fails", "error")
    tools.set("uncordon-fails")
    fleet = one_host(tools)
    assert fleet.run(lambda run, _: done("never called")).hosts[0].untouched is Untouched.SKIPPED
    assert [host for host, _ in fleet.rollout.closed] == ["gpu01"]
    assert "kubectl uncordon: exit code 1: error: unable to uncordon" in fleet.events[-1].text


def test_a_node_is_reopened_whatever_goes_wrong_with_its_drain(tools: Tools) -> None:
    class Breaks(Kubernetes):
        def clear(self, node: NodeIdentity, closed: Closed, stop: Callable[[], bool]) -> None:
            raise OSError("too many open files")

    fleet = Fleet(names(1), schedulers=(Breaks(tools.path("kubectl"), Path("/x"), 1),))
    assert fleet.run(lambda run, _: done("never called")).hosts[0].code is ExitCode.FAILED
    assert (tools.cordoned, fleet.rollout.closed) == (False, ())


def test_where_the_second_of_two_cannot_drain_it_the_first_lets_it_back(tools: Tools) -> None:
    tools.set("jobs", "17\n" * 50)
    fleet = Fleet(names(1), schedulers=(kubernetes(tools), slurm(tools)))
    assert fleet.run(lambda run, _: done("never called")).hosts[0].untouched is Untouched.SKIPPED
    assert (tools.cordoned, tools.drained, fleet.rollout.closed) == (False, False, ())


def test_ctrl_c_ends_a_drain_and_nothing_has_begun(tools: Tools) -> None:
    tools.set("drain-waits")
    fleet = one_host(tools)

    def press() -> None:
        while not (tools.directory / "draining").exists():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    report = fleet.run(lambda run, _: done("never called"))
    assert report.hosts[0].problem == "not begun: the run was stopped"
    assert (tools.cordoned, fleet.rollout.closed) == (False, ())


def test_a_rollout_that_stops_while_a_host_is_drained_does_not_begin_it(tools: Tools) -> None:
    fleet = Fleet(names(2), Policy(max_failures=Share(0)), schedulers=(kubernetes(tools),))
    tools.set("drain-waits")

    def stopped() -> None:
        while not (tools.directory / "draining").exists():
            threading.Event().wait(0.01)
        fleet.rollout.gate.stop("gpu09 did not come back from its reboot")

    threading.Thread(target=stopped).start()
    report = fleet.run(lambda run, _: done("never called"), forks=1)
    assert {host.problem for host in report.hosts} == {"not begun: gpu09 did not come back from its reboot"}


@pytest.mark.parametrize("make", [kubernetes, slurm])
def test_a_node_whose_closing_was_done_and_its_answer_lost_takes_work_again(
    tools: Tools, make: Callable[[Tools], Scheduler]
) -> None:
    tools.set("close-fails")
    fleet = Fleet(names(1), schedulers=(make(tools),))
    assert fleet.run(lambda run, _: done("never called")).hosts[0].untouched is Untouched.SKIPPED
    assert (tools.cordoned, tools.drained, fleet.rollout.closed) == (False, False, ())


@pytest.mark.parametrize(("make", "word"), [(kubernetes, "uncordon"), (slurm, "RESUME")])
def test_where_it_cannot_be_reopened_either_the_command_is_named(
    tools: Tools, make: Callable[[Tools], Scheduler], word: str
) -> None:
    for name in ("close-fails", "uncordon-fails", "resume-fails"):
        tools.set(name)
    fleet = Fleet(names(1), schedulers=(make(tools),))
    assert fleet.run(lambda run, _: done("never called")).hosts[0].untouched is Untouched.SKIPPED
    assert tools.cordoned or tools.drained
    ((host, command),) = fleet.rollout.closed
    assert host == "gpu01"
    assert word in command


def test_every_node_is_reopened_though_nobody_can_be_told(tools: Tools) -> None:
    """Slurm's cannot be, and that cannot be said; Kubernetes' comes after it."""
    tools.set("resume-fails")
    fleet = Fleet(names(1), schedulers=(kubernetes(tools), slurm(tools)))

    class Deaf(list[Event]):
        def append(self, event: Event) -> None:
            if "stays closed" in event.text:
                raise BrokenPipeError

    fleet.events = Deaf()
    fleet.run(lambda run, _: done(run.transport.target))
    assert (tools.cordoned, tools.drained) == (False, True)
    assert len(fleet.rollout.closed) == 1


def uncordon(tools: Tools) -> str:
    return typed(tools.path("kubectl"), "--kubeconfig", "/etc/a b;c", "uncordon", "gpu01")


def test_what_opens_a_node_is_written_down_before_it_is_closed(tools: Tools) -> None:
    fleet = one_host(tools)
    cordoned: list[bool] = []

    class Watched(list[tuple[str, tuple[str, ...]]]):
        def append(self, one: tuple[str, tuple[str, ...]]) -> None:
            cordoned.append(tools.cordoned)
            super().append(one)

    fleet.kept = Watched()
    fleet.run(lambda run, _: done(run.transport.target))
    assert fleet.kept == [("gpu01", (uncordon(tools),)), ("gpu01", ())]
    assert cordoned == [False, False]


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_node_that_an_earlier_run_left_closed_is_opened_once_it_is_well(tools: Tools, ends_well: bool) -> None:
    """Not where this run has touched nothing: the earlier one may have."""
    tools.node("boot-of-gpu01", cordoned=True)

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        if not ends_well:
            raise Drift("gpu01: it changed since its plan was shown")
        return done(host_run.transport.target)

    fleet = one_host(tools, left_closed=(("gpu01", uncordon(tools)),))
    fleet.run(one)
    assert tools.cordoned is not ends_well
    assert fleet.rollout.closed == (() if ends_well else (("gpu01", uncordon(tools)),))


def test_a_node_is_not_opened_under_another_gpunode(tools: Tools) -> None:
    """It took the host's lock as soon as ours was given back, found the node closed, and counts on that."""

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        begins(host_run)
        return done(host_run.transport.target)

    fleet = one_host(tools, others=["gpu01"])
    assert fleet.run(one).hosts[0].code is ExitCode.DONE
    assert tools.cordoned
    assert fleet.rollout.closed == (("gpu01", uncordon(tools)),)
    assert [event.text for event in fleet.events if "another gpunode is at work" in event.text]


def test_a_node_whose_host_was_not_touched_is_let_back_whoever_works_there(tools: Tools) -> None:
    """The other one found the host's lock free and drains nobody: of our cordon it knows nothing."""

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        raise HostLocked("gpu01: another gpunode is at work")

    fleet = one_host(tools, others=["gpu01"])
    assert fleet.run(one).hosts[0].code is ExitCode.LOCKED
    assert (tools.cordoned, fleet.rollout.closed) == (False, ())


def test_a_lock_that_cannot_be_asked_keeps_no_node_closed(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(lock: Lock) -> None:
        raise TransportError("gpu01: the connection is gone", evidence="e", remedy="r")

    def one(host_run: HostRun, plan: Plan) -> HostOutcome:
        begins(host_run)
        return done(host_run.transport.target)

    monkeypatch.setattr(Lock, "peek", lost)
    fleet = one_host(tools)
    fleet.run(one)
    assert not tools.cordoned


def test_of_a_node_that_two_closed_both_commands_are_known(tools: Tools) -> None:
    left = (("gpu01", uncordon(tools)), ("gpu01", "scontrol resume"), ("gpu02", "x"))
    fleet = one_host(tools, idle=["gpu01"], left_closed=left)
    assert fleet.rollout.closed == left


def test_a_record_that_names_another_command_opens_nothing_and_is_never_run(tools: Tools) -> None:
    tools.node("boot-of-gpu01", cordoned=True)
    fleet = one_host(tools, left_closed=(("gpu01", f"touch {tools.directory}/x"),))
    fleet.run(lambda run, _: done(run.transport.target))
    assert tools.cordoned
    assert not (tools.directory / "x").exists()
    assert fleet.rollout.closed == (("gpu01", f"touch {tools.directory}/x"),), "it is still named"


def test_a_host_that_has_nothing_left_to_do_is_named_as_left_closed(tools: Tools) -> None:
    fleet = one_host(tools, idle=["gpu01"], left_closed=(("gpu01", uncordon(tools)),))
    fleet.run(lambda run, _: done(run.transport.target, changed=False))
    assert fleet.rollout.closed == (("gpu01", uncordon(tools)),)
    assert tools.calls == []
