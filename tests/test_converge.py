from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpunode.apply.journal.snapshot import before_values
from gpunode.apply.lock import HostLock, Owner
from gpunode.converge import Convergence, HostRun, RebootTurn, Resume
from gpunode.errors import Drift, ExitCode, HostLocked, StepFailed, TransportError
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import (
    HostFacts,
    KernelFacts,
    KernelTree,
    OsFacts,
    PciDevice,
    RuntimeFacts,
)
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.report import HostOutcome
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.planner.drift import same_plan
from gpunode.planner.resume import exec_line, resume_step
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.machine import hosts_json
from gpunode.render.run_text import run_text
from gpunode.transport.base import Completed
from tests.apply.machine import Machine
from tests.render.published import wrong

HOST = HostFacts("testhost", "testhost", OsFacts("debian", "12"), KernelFacts("6.1.0"), True, stream_sha256="now")
OWNER = Owner("controller", 1, "token-1")
OK, BAD = Run(("true",)), Run(("sh", "-c", "echo daemon says no; exit 1"))


def plan(*actions: Run, reboot: str | None = None, replan: bool = False) -> Plan:
    steps = (Step("docker.default", "title", "runc is the default", actions),) if actions else ()
    return Plan("testhost", Spec(), "then", steps=steps, reboot=reboot, replan_after=replan)


EMPTY = plan()
REFUSED = Kept(
    "containerd.default", "config.toml is broken", refused=True, remedy=Remedy(RepairAction.CONFIGURE, "mend it")
)


def partly(whole: Plan) -> Plan:
    """The plan, with an engine that is refused."""
    return replace(whole, kept=(REFUSED,))


def way(
    machine: Machine,
    plans: Iterable[Plan],
    *,
    policy: RebootPolicy = RebootPolicy.NEVER,
    saved: Plan | None = None,
    local: bool = False,
    host: HostFacts = HOST,
    stop: Callable[[], bool] = lambda: False,
) -> Convergence:
    """A convergence that meets these plans, one a pass."""
    coming, lock = iter(plans), HostLock(machine, OWNER, lambda _: True)
    return Convergence(
        HostRun("r1", machine, lock, on_event=lambda _: None, stop=stop, local=local, pause=lambda _: None),
        observe=lambda: host,
        decide=lambda host, done: next(coming),
        policy=policy,
        saved=saved,
    )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("plans", "code", "steps"),
    [
        ([EMPTY], ExitCode.DONE, 0),
        ([plan(OK)], ExitCode.DONE, 1),
        ([plan(OK, replan=True), EMPTY], ExitCode.DONE, 1),
        ([plan(OK, replan=True), plan(OK)], ExitCode.DONE, 2),
        ([plan(OK, replan=True)] * 3 + [EMPTY], ExitCode.DONE, 3),
        ([plan(OK, replan=True)] * 4, ExitCode.FAILED, 3),
        ([plan(BAD, replan=True)], ExitCode.FAILED, 1),
        ([plan(OK, reboot="nouveau is loaded")], ExitCode.REBOOT_NEEDED, 1),
        ([plan(reboot="nouveau is loaded")], ExitCode.REBOOT_NEEDED, 0),
    ],
    ids=[
        "nothing to do",
        "one pass",
        "a second look finds all well",
        "a second pass",
        "the third pass settles it",
        "three passes are enough",
        "a failure ends it",
        "a reboot is left to the person",
        "only a reboot is left",
    ],
)
def test_converge(machine: Machine, plans: list[Plan], code: ExitCode, steps: int) -> None:
    report = way(machine, plans).run()
    assert (report.code, len(report.steps)) == (code, steps)
    assert not (machine.root / "run" / "lock").exists(), "the lock is given back"


def test_a_file_that_is_not_what_its_plan_saw_stops_all_before_the_first_write(machine: Machine) -> None:
    """It is seen in the round trip that takes the lock, and the lock is given back."""
    file = machine.root / "daemon.json"
    file.write_text("somebody's\n")
    write = PutFile(str(file), "ours\n", expect_sha256="0" * 64)
    with pytest.raises(Drift, match=r"daemon\.json changed since the plan was made"):
        way(machine, [replace(plan(OK), steps=(Step("s", "title", "why", (write,)),))]).run()
    assert file.read_text() == "somebody's\n"
    assert not (machine.state / "journal.jsonl").exists()
    assert not (machine.root / "run" / "lock").exists()
    asked = [script for script in machine.scripts if "echo directories" in script]
    assert len(asked) == 1, "of the lock and of the files in one"
    assert 'ln "$mine"' in asked[0]


@pytest.mark.parametrize("silent", [True, False], ids=["in one with the look", "in a script of their own"])
def test_a_pass_is_over_in_the_journal_before_the_next_look(machine: Machine, silent: bool) -> None:
    going, seen = way(machine, [plan(OK, replan=True), EMPTY]), list[str]()

    def quick(first: str) -> HostFacts | None:
        if not seen:
            seen.append("")  # nothing is there yet
            return HOST
        if silent:
            done = machine.run(first, timeout_s=30)
            assert (done.code, done.stdout) == (0, b"")
            seen.append(machine.journal)
        return HOST if silent else None

    def observe() -> HostFacts:
        seen.append(machine.journal)
        return HOST

    going.quick, going.observe = quick, observe
    assert going.run().code is ExitCode.DONE
    kinds = [json.loads(line)["kind"] for line in seen[1].splitlines()]
    assert kinds == ["run-begin", "step-begin", "command", "step-end", "run-end"]
    assert machine.journal == seen[1]
    ended = [script for script in machine.scripts if '"run-end"' in script]
    assert len(ended) == 1
    assert ('$state"/runs/' in ended[0]) is silent, "that script asks what still runs"


def test_a_setup_of_one_pass_ends_in_the_script_that_gives_the_lock_back(machine: Machine) -> None:
    assert way(machine, [plan(OK)]).run().code is ExitCode.DONE
    assert len(machine.scripts[2:]) == 3, "once it was looked at: the lock and the files; the command; the end"
    assert json.loads(machine.journal.splitlines()[-1])["kind"] == "run-end"
    assert not (machine.root / "run" / "lock").exists()


def test_an_end_that_cannot_be_written_is_told_and_the_lock_given_back(machine: Machine) -> None:
    journal = machine.state / "journal.jsonl"
    with pytest.raises(StepFailed, match="cannot write the journal"):
        way(machine, [plan(Run(("sh", "-c", f"rm {journal}; mkdir {journal}")))]).run()
    assert not (machine.root / "run" / "lock").exists()


def test_an_end_of_a_run_that_lost_its_lock_is_not_written(machine: Machine) -> None:
    lock = machine.root / "run" / "lock"
    with pytest.raises(HostLocked, match="took over"):
        way(machine, [plan(Run(("sh", "-c", f"echo another >{lock}")))]).run()
    assert lock.read_text() == "another\n"
    assert "run-end" not in machine.journal


def test_a_plan_knows_what_its_run_has_done_already(machine: Machine) -> None:
    """Else a package of which the repository has no newer one would be upgraded in every pass, and the run fail."""
    known = []
    coming = iter([plan(OK, replan=True), EMPTY])

    def decide(host: HostFacts, done: frozenset[str]) -> Plan:
        known.append(done)
        return next(coming)

    assert replace(way(machine, []), decide=decide).run().code is ExitCode.DONE
    assert known == [frozenset(), frozenset({"docker.default"})]


@pytest.mark.parametrize(
    ("plans", "code", "steps"),
    [
        ([EMPTY], ExitCode.UNSUPPORTED, 0),
        ([plan(OK)], ExitCode.UNSUPPORTED, 1),
        ([plan(OK, replan=True), EMPTY], ExitCode.UNSUPPORTED, 1),
        ([plan(OK, reboot="nouveau is loaded")], ExitCode.UNSUPPORTED, 1),
        ([plan(BAD)], ExitCode.FAILED, 1),
    ],
    ids=["nothing else to do", "the rest is done", "two passes", "a reboot as well", "a failure counts more"],
)
def test_what_is_refused_leaves_the_rest_to_be_done_and_shows_in_the_code(
    machine: Machine, plans: list[Plan], code: ExitCode, steps: int
) -> None:
    report = way(machine, map(partly, plans)).run()
    assert (report.code, len(report.steps)) == (code, steps)
    assert report.plan is not None
    assert report.plan.refused == (REFUSED,)
    assert "refused   containerd.default: config.toml is broken" in run_text(report)
    assert (
        wrong("".join(hosts_json("setup", [HostOutcome("testhost", code, run=report)], seconds_s=1)), "setup-result")
        == []
    )


@pytest.mark.parametrize("action", [OK, BAD], ids=["done", "failed"])
def test_its_report_in_json_is_as_published(machine: Machine, action: Run) -> None:
    report = way(machine, [plan(action)] * 2).run()
    assert report.steps[0].commands
    outcome = HostOutcome("testhost", report.code, run=report)
    assert wrong("".join(hosts_json("setup", [outcome], seconds_s=1)), "setup-result") == []


def test_what_keeps_coming_back_is_named(machine: Machine) -> None:
    report = way(machine, [plan(OK, replan=True)] * 4).run()
    assert "docker.default" in report.error
    assert "runc is the default" in report.evidence


def test_the_tools_words_reach_the_report(machine: Machine) -> None:
    assert "daemon says no" in way(machine, [plan(BAD)]).run().error


def test_nothing_is_written_when_the_plan_is_empty(machine: Machine) -> None:
    assert way(machine, [EMPTY]).run().code is ExitCode.DONE
    assert list(machine.root.iterdir()) == []


def test_the_resolver_is_asked_by_its_step_alone(machine: Machine, tmp_path: Path) -> None:
    """The plan was shown with its answer and agreed to; whoever runs it hears the answer that counts."""
    asked = tmp_path / "asked"
    ask = Run(("sh", "-c", f"echo x >>{asked}"), read_only=True, record_output=True)
    assert way(machine, [plan(ask)]).run().code is ExitCode.DONE
    assert asked.read_text() == "x\n"


def test_a_held_lock_ends_it_before_a_plan_is_made(machine: Machine) -> None:
    HostLock(machine, Owner("laptop", 5, "token-2"), lambda _: True).take()
    nothing_planned: list[Plan] = []
    with pytest.raises(HostLocked, match="pid 5 on laptop"):
        way(machine, nothing_planned).run()


def test_the_lock_is_given_back_after_an_error(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("edited")
    step = Step("a", "t", "w", (PutFile(str(path), "new", expect_sha256="0" * 64),))
    with pytest.raises(Drift):
        way(machine, [replace(EMPTY, steps=(step,))]).run()
    assert not (machine.root / "run" / "lock").exists()


def test_a_stop_leaves_the_rest_and_says_so(machine: Machine) -> None:
    report = way(machine, [plan(OK)], stop=lambda: True).run()
    assert (report.code, report.error) == (ExitCode.FAILED, "stopped before docker.default")


@dataclass
class Rebooting(Machine):
    """Comes back with another boot id, and with an empty /run, when it is asked to reboot."""

    boots: int = 0

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if script.startswith("cat /proc/sys/kernel/random/boot_id"):
            return Completed(0, f"boot-{self.boots}\n".encode(), b"", 0)
        if "systemctl reboot" in script:
            self.boots += 1
            (self.root / "run" / "lock").unlink()
            return Completed(0, b"boot boot-0\n", b"", 0)
        return super().run(script, stdin=stdin, timeout_s=timeout_s)


def test_over_ssh_the_controller_reboots_reconnects_and_goes_on(tmp_path: Path) -> None:
    machine = Rebooting(tmp_path)
    plans = [plan(OK, reboot="nouveau is loaded"), plan(OK)]
    report = way(machine, plans, policy=RebootPolicy.IF_NEEDED).run()
    assert (report.code, len(report.steps), machine.boots) == (ExitCode.DONE, 2, 1)


class Dark(Rebooting):
    """Goes down for its reboot, and refuses every connection from then on."""

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if self.boots:
            raise TransportError("testhost:22: refuses connections", remedy="start sshd there")
        return super().run(script, stdin=stdin, timeout_s=timeout_s)


@pytest.mark.parametrize(("given_s", "wait_s"), [(None, 900), (1800, 1800)])
def test_a_host_that_does_not_come_back_says_so_and_not_that_its_lock_cannot_be_given_back(
    tmp_path: Path, given_s: int | None, wait_s: int
) -> None:
    minutes = itertools.count(0.0, 60.0)
    going = way(Dark(tmp_path), [plan(OK, reboot="nouveau is loaded")], policy=RebootPolicy.IF_NEEDED)
    going.host_run = replace(going.host_run, clock=lambda: next(minutes), reboot_wait_s=given_s)
    with pytest.raises(TransportError, match=f"did not come back within {wait_s} s after the reboot") as told:
        going.run()
    assert told.value.evidence == "testhost:22: refuses connections"
    assert wait_s / 60 <= next(minutes) / 60 < wait_s / 60 + 8
    assert told.value.remedy.action is RepairAction.POWER_CYCLE


def test_a_host_of_a_fleet_waits_for_its_turn_to_reboot_and_keeps_its_lock_meanwhile(tmp_path: Path) -> None:
    machine = Rebooting(tmp_path)
    beats: list[float] = []

    def take(keep: Callable[[], None]) -> str:
        lock = machine.root / "run" / "lock"
        os.utime(lock, (0, 0))
        keep()
        beats.append(lock.stat().st_mtime)
        return ""

    going = way(machine, [plan(OK, reboot="nouveau is loaded"), plan(OK)], policy=RebootPolicy.IF_NEEDED)
    going.host_run = replace(going.host_run, reboot_turn=RebootTurn(take))
    assert (going.run().code, machine.boots) == (ExitCode.DONE, 1)
    assert beats[0] > 0, "a heartbeat"


def test_a_host_that_loses_its_lock_while_it_waits_does_not_reboot(tmp_path: Path) -> None:
    machine = Rebooting(tmp_path)

    def take(keep: Callable[[], None]) -> str:
        (machine.root / "run" / "lock").write_text('{"host": "b", "pid": 1, "token": "another"}')
        keep()
        return ""

    going = way(machine, [plan(OK, reboot="nouveau is loaded")], policy=RebootPolicy.IF_NEEDED)
    going.host_run = replace(going.host_run, reboot_turn=RebootTurn(take))
    with pytest.raises(HostLocked, match="took over"):
        going.run()
    assert machine.boots == 0


def test_a_host_that_may_not_reboot_says_why_and_that_it_still_has_to(tmp_path: Path) -> None:
    machine = Rebooting(tmp_path)
    going = way(machine, [plan(OK, reboot="nouveau is loaded")], policy=RebootPolicy.IF_NEEDED)
    going.host_run = replace(going.host_run, reboot_turn=RebootTurn(lambda keep: "gpu03 did not come back"))
    report = going.run()
    assert (report.code, report.reboot, machine.boots) == (ExitCode.REBOOT_NEEDED, "nouveau is loaded", 0)
    assert report.evidence == "not rebooted: gpu03 did not come back"


@pytest.mark.parametrize("how", ["the run was stopped", "its time was over"])
def test_a_host_that_is_stopped_after_it_got_its_turn_does_not_reboot_and_gives_it_back(
    tmp_path: Path, how: str
) -> None:
    """The facts before a reboot take a while."""
    machine = Rebooting(tmp_path)
    log: list[str] = []

    def take(keep: Callable[[], None]) -> str:
        log.append("taken")
        return ""

    turn = RebootTurn(
        take,
        lambda: log.append("given back"),
        lambda: "the run was stopped" if log and how == "the run was stopped" else "",
    )
    going = way(
        machine,
        [plan(OK, reboot="nouveau is loaded")],
        policy=RebootPolicy.IF_NEEDED,
        stop=lambda: bool(log) and how == "its time was over",
    )
    going.host_run = replace(going.host_run, reboot_turn=turn)
    report = going.run()
    assert (report.code, report.reboot, machine.boots) == (ExitCode.REBOOT_NEEDED, "nouveau is loaded", 0)
    assert report.evidence.startswith("not rebooted: ")
    assert log == ["taken", "given back"]


def test_a_reboot_that_does_not_help_is_not_tried_again(tmp_path: Path) -> None:
    machine = Rebooting(tmp_path)
    plans = [plan(reboot="nouveau is loaded")] * 2
    report = way(machine, plans, policy=RebootPolicy.IF_NEEDED).run()
    assert (report.code, machine.boots) == (ExitCode.REBOOT_NEEDED, 1)
    assert "after one" in report.evidence


def test_a_saved_plan_holds_while_the_facts_lead_to_the_same_steps() -> None:
    assert same_plan(replace(plan(OK), facts_sha256="then"), plan(OK)) == plan(OK)
    with pytest.raises(Drift, match="changed since the plan was made") as caught:
        same_plan(plan(OK), plan(BAD))
    assert "docker.default" in caught.value.evidence


def test_the_journal_is_told_what_undo_needs() -> None:
    host = replace(
        HOST,
        packages=PackageFacts("apt", {"nvidia-smi": PackageVersion("580.1")}, frozenset({"nvidia-smi"})),
        runtimes=(
            RuntimeFacts("docker", "28", "/etc/docker/daemon.json", "docker.service", "", effective_default="runc"),
        ),
    )
    names = ("nvidia-smi", "cuda-drivers")
    install = Run(("apt-get", "-y", "install", *names), detach=True, packages=names)
    values = before_values(host, plan(install))
    assert values["packages"] == {"cuda-drivers": None, "nvidia-smi": "580.1"}
    assert (values["held"], values["default_runtimes"]) == (["nvidia-smi"], {"docker": "runc"})


def test_the_resume_unit_runs_our_words_and_removes_itself() -> None:
    put = resume_step(("/opt/gp node/gpunode", "setup", "--yes", "50%$")).actions[0]
    assert isinstance(put, PutFile)
    assert 'ExecStart="/opt/gp node/gpunode" "setup" "--yes" "50%%$$"' in put.text
    assert 'ExecStopPost=/bin/rm -f "/etc/systemd/system/gpunode-resume.service"' in put.text
    assert exec_line(('say "hi"', "a\\b")) == r'"say \"hi\"" "a\\b"'


def test_no_reboot_into_a_kernel_without_a_module(machine: Machine) -> None:
    bare = KernelFacts("6.1.0", trees=(KernelTree("6.2.0", True, True, None),), next_boot="6.2.0")
    host = replace(HOST, kernel=bare, pci=(PciDevice("0000:41:00.0", "10de", "2330", "0302"),))
    returned: list[str] = []
    going = way(machine, [plan(OK, reboot="nouveau is loaded")], policy=RebootPolicy.IF_NEEDED, host=host)
    going.host_run = replace(
        going.host_run, reboot_turn=RebootTurn(lambda keep: "", lambda: returned.append("to the others"))
    )
    report = going.run()
    assert (report.code, returned) == (ExitCode.FAILED, ["to the others"])
    assert report.error == "not rebooted: 6.2.0 boots next and has no nvidia module"


@pytest.mark.parametrize(
    "error",
    [TransportError("no answer", evidence="timed out", remedy="look at it"), ValueError("a fault of ours")],
    ids=["no answer", "a fault of ours"],
)
def test_a_host_that_is_lost_before_its_reboot_gives_its_turn_back(machine: Machine, error: Exception) -> None:
    """No reboot was sent, so it is not one that does not come back."""
    returned: list[str] = []
    going = way(machine, [plan(OK, reboot="nouveau is loaded")], policy=RebootPolicy.IF_NEEDED)
    looks = iter([HOST])

    def observe() -> HostFacts:
        for host in looks:
            return host
        raise error

    going.observe = observe
    going.host_run = replace(
        going.host_run, reboot_turn=RebootTurn(lambda keep: "", lambda: returned.append("to the others"))
    )
    with pytest.raises(type(error)):
        going.run()
    assert returned == ["to the others"]


def test_a_host_whose_lock_is_taken_over_before_its_reboot_gives_its_turn_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*words: object, **more: object) -> None:
        raise HostLocked("testhost: another gpunode took over this host's lock")

    monkeypatch.setattr("gpunode.converge.reboot_and_wait", taken)
    returned: list[str] = []
    going = way(machine, [plan(OK, reboot="nouveau is loaded")], policy=RebootPolicy.IF_NEEDED)
    turn = RebootTurn(lambda keep: "", lambda: returned.append("to the others"))
    going.host_run = replace(going.host_run, reboot_turn=turn)
    with pytest.raises(HostLocked):
        going.run()
    assert returned == ["to the others"]


def test_a_reboot_that_needs_the_console_is_left_to_the_person(machine: Machine) -> None:
    waiting = replace(plan(OK, reboot="a key waits"), console="press a key in MokManager")
    report = way(machine, [waiting], policy=RebootPolicy.IF_NEEDED).run()
    assert (report.code, report.remedy.text) == (ExitCode.REBOOT_NEEDED, "press a key in MokManager")


@pytest.mark.parametrize("console", [None, "press a key in MokManager"], ids=["a reboot", "one that is attended"])
def test_no_reboot_of_this_machine_after_which_nothing_goes_on(machine: Machine, console: str | None) -> None:
    going = way(
        machine, [replace(plan(OK, reboot="nouveau is loaded"), console=console)], policy=RebootPolicy.IF_NEEDED
    )
    going.host_run = replace(going.host_run, local=True)
    going.resume = Resume(("/tmp/gpunode.pyz", "setup"), fault="gpunode runs from /tmp")
    report = going.run()
    assert report.code is ExitCode.REBOOT_NEEDED
    assert report.evidence == "not rebooted, since nothing would go on after it: gpunode runs from /tmp"
    assert [result.id for result in report.steps] == ["docker.default"]


def changed_meanwhile(machine: Machine, during: Callable[[], object]) -> Convergence:
    """Setup of a plan that was shown, on a host where `during` happens while facts are taken."""
    going = way(machine, [plan(BAD)], saved=plan(OK))

    def observe() -> HostFacts:
        during()
        return HOST

    going.observe = observe
    return going


def test_a_host_that_another_gpunode_changes_is_locked_and_says_by_whom(machine: Machine) -> None:
    other = Owner("laptop", 5, "token-2", "ann", "2026-11-23T02:04:33.120+00:00")
    with pytest.raises(HostLocked, match=r"pid 5 on laptop \(ann\), since 2026-11-23T02:04:33") as caught:
        changed_meanwhile(machine, HostLock(machine, other, lambda _: True).take).run()
    assert "plan --save" not in str(caught.value.remedy)


def test_a_host_that_changed_since_its_plan_was_shown_is_planned_by_the_same_command(machine: Machine) -> None:
    with pytest.raises(Drift, match="changed since its plan was shown") as caught:
        changed_meanwhile(machine, lambda: None).run()
    assert caught.value.remedy.text.startswith("gpunode setup makes the plan of what is there now")
    assert "docker.default" in caught.value.evidence
