"""What a person sees, letter by letter."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from gpunode.cli.errors import error_text
from gpunode.engines.daemon import commands
from gpunode.errors import ExitCode, GpunodeError
from gpunode.fleet.run import not_begun
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts, PciDevice
from gpunode.model.plan import Kept, Plan, Step, Undoing
from gpunode.model.report import (
    CheckReport,
    CheckResult,
    Event,
    EventKind,
    Finding,
    HostOutcome,
    NotApplicable,
    RunReport,
    Severity,
    StepResult,
    StepStatus,
    Untouched,
)
from gpunode.model.spec import Spec
from gpunode.remedy import AGAIN, Command, Remedy, RepairAction, gpunode, setup
from gpunode.render.check_text import check_text, fleet_check_text
from gpunode.render.clean import clean
from gpunode.render.detect_text import detect_text
from gpunode.render.door import cleaned, show
from gpunode.render.plan_text import explanation_text, plan_text, plans_text
from gpunode.render.remedy_text import hosts_are_named_by, remedy_text
from gpunode.render.run_text import event_line, fleet_run_text, run_text
from gpunode.render.style import Style
from gpunode.render.wording import fold_hosts, mask_url, seconds
from tests.render.values import CHECK, FOUND, INSTALL, PLAN

RESTART = commands.restart("containerd.service")
RESTARTS = Step("containerd.default", "config.toml", "", (RESTART,))
ROLLS_BACK = Step("containerd.default", "config.toml", "", (), undo=(RESTART,))


def test_a_plan_at_80_columns() -> None:
    assert plan_text(PLAN, Style(80)) == "\n".join(
        (
            "gpu07   Ubuntu 24.04 · Linux 6.8.0-51-generic · 8 × H100 SXM5 80GB · docker",
            "        28.5.2",
            "",
            "Driver     595.91.07 with open kernel modules",
            "           why: 8 × Hopper run either flavour",
            "",
            "  1  repo.cuda       add NVIDIA's CUDA repository",
            "  2  docker.default  /etc/docker/daemon.json: + runtimes.nvidia, default-runtime",
            "                     runc → nvidia",
            "",
            "Unchanged  Secure Boot is off · kubelet's cgroup driver is systemd, as runc's",
            "Then       reboot once: nouveau is loaded (--reboot if-needed does it and",
            "           continues)",
            "Details    -v shows why, commands and diffs of all 2 steps",
            "Total      2 steps · no engine restart · 1 reboot",
        )
    )


@pytest.mark.parametrize(
    ("plan", "total"),
    [
        pytest.param(
            replace(PLAN, steps=(RESTARTS, RESTARTS), reboot=None),
            "Total      2 steps · 1 engine restart (containerd) · no reboot expected",
            id="one engine restarted by two steps",
        ),
        pytest.param(
            replace(PLAN, steps=(ROLLS_BACK,)), "Total      1 step · no engine restart · 1 reboot", id="rollback"
        ),
    ],
)
def test_a_plan_ends_with_its_steps_restarts_and_reboots(plan: Plan, total: str) -> None:
    assert plan_text(plan).splitlines()[-1] == total


def test_verbose_checks_say_what_passing_ones_found() -> None:
    lines = check_text(CheckReport("gpu04", {FOUND.id: FOUND}), Style(80, verbose=1)).splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["pass", "os", "cpu-governor"],
        ["saw", "os.cpu-governor:", "64", "×", "performance"],
    ]


def test_verbose_plans_say_why_and_show_diffs() -> None:
    text = plan_text(PLAN, Style(80, verbose=1))
    assert "     why: docker runs runc\n     does: write /etc/docker/daemon.json\n" in text
    assert "\n       -{}\n       +{1}" in text


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        pytest.param("gpu07", "gpu07   Ubuntu", id="the same name once"),
        pytest.param("root@GPU07.example:22", "root@GPU07.example:22   Ubuntu", id="the same host, written longer"),
        pytest.param("10.0.0.7", "10.0.0.7 (gpu07)   Ubuntu", id="another name, the host's own in brackets"),
    ],
)
def test_a_plan_names_its_host_once(target: str, shown: str) -> None:
    plan = replace(PLAN, target=target, hostname="gpu07")
    assert plan_text(plan).startswith(shown)


def test_equal_plans_of_hosts_with_names_of_their_own_are_one_group() -> None:
    plans = [replace(PLAN, target=f"10.0.0.{n}", hostname=f"gpu0{n}") for n in (1, 2)]
    assert plans_text(plans).startswith("10.0.0.1, 10.0.0.2   Ubuntu 24.04")


def test_equal_plans_are_shown_once_under_all_names() -> None:
    text = plans_text([replace(PLAN, target=f"gpu{n:02}") for n in (1, 2, 3, 7)])
    assert text.startswith("gpu07, gpu[01-03]   Ubuntu 24.04")
    assert text.count("repo.cuda") == 1


def test_an_empty_plan_says_so() -> None:
    assert "no changes: this host matches the spec" in plan_text(Plan("h", Spec(), ""))


def test_what_a_plan_refuses_is_named_with_its_remedy() -> None:
    remedy = Remedy(RepairAction.CONFIGURE, "mend it, then ", AGAIN)
    kept = (
        Kept("a", "as it is"),
        Kept("containerd.default", "it is broken", refused=True, evidence="x", remedy=remedy),
    )
    assert plan_text(replace(PLAN, steps=(), kept=kept, reboot=None)).splitlines()[-5:] == [
        "Unchanged  as it is",
        "Refused    containerd.default: it is broken",
        "Evidence   x",
        "Remedy     mend it, then gpunode setup",
        "Then       no changes: the rest of this host matches the spec",
    ]


def test_an_undo_names_each_run_once() -> None:
    undone = Plan("h", Spec(), "", undo=Undoing(("20261121T1-7.1", "20261121T1-7.2", "20261122T1-8.1")))
    assert "\n\nUndo       20261121T1-7, 20261122T1-8\n\n" in plan_text(undone)


def test_a_driver_of_an_ended_branch_says_when_it_ended() -> None:
    choice = DriverChoice(470, None, "proprietary", (), branch_status="ended", end_of_support="2024-09")
    assert "\nExpires                it has: branch 470 ended in 2024-09" in explanation_text(
        replace(PLAN, driver=choice)
    )


def test_a_check_is_worst_first_in_two_lines_a_cause() -> None:
    assert check_text(CHECK, Style(100), seconds_s=0.42) == "\n".join(
        (
            "FAIL  rt.effective-default   containerd still runs with runc as its default",
            "      → gpunode setup",
            "WARN  drv.dkms-next          the next boot has no module (6.8.0-52 lacks it)",
            "      → install",
            "gpu04: 1 check passes · 1 fails · 1 warning · 1 not applicable here · -v shows all of it · 0.4 s",
        )
    )


def unjudged(name: str, **reasons: str) -> CheckReport:
    """Nothing of what was asked for applies, for these reasons; all else was left out."""
    asked = {f"mig.{id}": NotApplicable(why) for id, why in reasons.items()}
    outcomes = {**asked, "drv.loaded": NotApplicable("--only mig", left_out=True)}
    return CheckReport(name, {id: CheckResult(id, Severity.ERROR, outcome) for id, outcome in outcomes.items()})


def test_where_nothing_of_what_was_asked_for_applies_it_is_said_with_why() -> None:
    report = unjudged("gpu04", mode="no GPU has MIG", uniform="no kubelet", mps="no kubelet")
    note = "note  none of the 3 checks asked for applies here: no GPU has MIG; no kubelet"
    assert check_text(report, Style(100)).splitlines()[0] == note
    one = check_text(unjudged("gpu04", mode="no GPU has MIG"), Style(100))
    assert one.startswith("note  the check asked for does not apply here: no GPU has MIG\n")
    for shown in (check_text(CHECK, Style(100)), check_text(report, Style(100, verbose=1))):
        assert "note" not in shown


def test_hosts_on_which_nothing_applies_are_told_from_those_that_pass() -> None:
    reports = [unjudged(name, mode="no GPU has MIG") for name in ("gpu01", "gpu02")]
    reports.append(CheckReport("gpu03", {FOUND.id: FOUND}))
    hosts = [HostOutcome(one.target, ExitCode.DONE, check=one) for one in reports]
    notes = [line for line in fleet_check_text(hosts, Style(100)).splitlines() if line.startswith("note")]
    assert notes == ["note  gpu[01-02]   the check asked for does not apply here: no GPU has MIG"]


def test_v_has_evidence_and_remedy_in_lines_of_their_own() -> None:
    assert check_text(CHECK, Style(100, verbose=1)).splitlines()[:4] == [
        "FAIL  rt.effective-default   containerd still runs with runc as its default",
        '              evidence  defaultRuntimeName "runc"',
        "              remedy    gpunode setup",
        "WARN  drv.dkms-next          the next boot has no module",
    ]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (
            110,
            'FAIL  rt.effective-default   containerd still runs with runc as its default (defaultRuntimeName "runc")',
        ),
        (100, "FAIL  rt.effective-default   containerd still runs with runc as its default"),
        (72, "FAIL  rt.effective-default   containerd still runs with runc as its"),
    ],
    ids=["with its evidence", "without, where it has no room", "it goes on in the next line of a narrow terminal"],
)
def test_the_first_line_of_a_cause_has_what_fits(width: int, line: str) -> None:
    assert check_text(CHECK, Style(width)).splitlines()[0] == line


def test_an_unreachable_host_is_among_the_fleets_failures() -> None:
    lost = HostOutcome(
        "gpu05", ExitCode.UNREACHABLE, problem="connection refused", remedy=Remedy(RepairAction.NONE, "start sshd")
    )
    text = fleet_check_text((HostOutcome("gpu04", ExitCode.FAILED, check=CHECK), lost), Style(100), seconds_s=3.1)
    assert text.startswith("FAIL  gpu05   connection refused\n              remedy    start sshd\nFAIL  gpu04   rt.")
    assert text.endswith("1 host fails · 1 warning · 1 without a report · -v shows all of it · 3.1 s")


def checked(*names: str) -> list[HostOutcome]:
    return [HostOutcome(name, ExitCode.FAILED, check=replace(CHECK, target=name)) for name in names]


def test_what_is_equal_on_several_hosts_is_told_once_with_their_range() -> None:
    other = replace(
        CHECK.results["drv.dkms-next"], outcome=Finding("the next boot has no module", "6.1 lacks it", INSTALL)
    )
    odd = CheckReport("db", {other.id: other})
    hosts = [*checked("gpu02", "gpu01", "gpu03"), HostOutcome("db", ExitCode.DONE, check=odd)]
    assert fleet_check_text(hosts, Style(110), seconds_s=3.1, ssh=True).splitlines() == [
        "FAIL  gpu[01-03]   rt.effective-default   containerd still runs with runc as its default",
        "      → gpunode setup --ssh 'gpu[01-03]'",
        "WARN  gpu[01-03]   drv.dkms-next          the next boot has no module (6.8.0-52 lacks it)",
        "      → install",
        "WARN  db           drv.dkms-next          the next boot has no module (6.1 lacks it)",
        "      → install",
        "3 hosts fail · 4 warnings · -v shows all of it · 3.1 s",
    ]


def test_many_names_without_a_range_are_counted_and_named_below() -> None:
    names = [f"10.0.{n}.7" for n in range(9)]
    lines = fleet_check_text(checked(*names), Style(160), ssh=True).splitlines()
    assert lines[0].startswith("FAIL  9 hosts   rt.effective-default   containerd")
    assert lines[1] == f"              hosts     {', '.join(names)}"
    assert lines[2] == "      → gpunode setup --ssh HOSTS"


def test_hosts_that_fail_alike_to_answer_are_one_line() -> None:
    lost = [HostOutcome(n, ExitCode.UNREACHABLE, problem=f"{n}: no answer within 2 s") for n in ("gpu05", "gpu06")]
    assert fleet_check_text(lost).startswith("FAIL  gpu[05-06]   no answer within 2 s\n")


@pytest.mark.parametrize(
    ("remedy", "typed"),
    [
        ((setup("--only", "driver"),), "gpunode setup --ssh root@gpu01:22 --only driver"),
        (
            (gpunode("plan"), " shows it; ", setup(), " does it"),
            "gpunode plan --ssh root@gpu01:22 shows it; gpunode setup --ssh root@gpu01:22 does it",
        ),
        ((gpunode("catalog mig", ssh=False), " lists them"), "gpunode catalog mig lists them"),
        (("look for a unit called 'gpunode setup'",), "look for a unit called 'gpunode setup'"),
    ],
    ids=["options follow", "every command", "no host, no --ssh", "prose stays"],
)
def test_a_remedy_over_ssh_is_typed_where_gpunode_was(remedy: tuple[str | Command, ...], typed: str) -> None:
    assert remedy_text(Remedy(RepairAction.NONE, *remedy), ["root@gpu01:22"]) == typed


def test_a_remedy_says_again_how_its_hosts_are_reached() -> None:
    hosts_are_named_by("", ("--user", "ann", "--identity", "/root/a key"))
    remedy = Remedy(RepairAction.NONE, setup("--cdi"), "; ", gpunode("catalog mig", ssh=False))
    try:
        told = remedy_text(remedy, ["gpu07", "gpu08"]), remedy_text(remedy)
    finally:
        hosts_are_named_by("")
    assert told == (
        "gpunode setup --ssh 'gpu[07-08]' --user ann --identity '/root/a key' --cdi; gpunode catalog mig",
        "gpunode setup --cdi; gpunode catalog mig",
    )


def stopped(name: str) -> HostOutcome:
    goes_on = Remedy(RepairAction.NONE, AGAIN, " goes on from what is there")
    return HostOutcome(
        name, ExitCode.FAILED, run=RunReport(name, error="stopped", remedy=goes_on, code=ExitCode.FAILED)
    )


def test_a_remedy_for_hosts_with_users_and_ports_is_printed_as_it_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    text = remedy_text(Remedy(RepairAction.NONE, setup("--cdi")), ["root@db:2222", "root@gpu01:2222"])
    show(text, sys.stdout)
    assert capsys.readouterr().out == "gpunode setup --ssh root@db:2222,root@gpu01:2222 --cdi\n"


def test_a_run_over_ssh_goes_on_with_its_hosts() -> None:
    one, two = stopped("gpu01"), stopped("gpu02")
    assert one.run is not None
    assert run_text(one.run).endswith("remedy    gpunode setup goes on from what is there")
    assert run_text(one.run, ssh=True).endswith("remedy    gpunode setup --ssh gpu01 goes on from what is there")
    both = fleet_run_text([one, two], ssh=True)
    assert both.count("remedy") == 1, "the same ending is said once"
    assert "gpunode setup --ssh 'gpu[01-02]' goes on from what is there" in both


def test_an_error_over_ssh_is_answered_with_its_host() -> None:
    error = GpunodeError("gpu01: drifted", remedy=Remedy(RepairAction.NONE, gpunode("plan"), " shows it"))
    assert error_text(error).endswith("remedy    gpunode plan shows it")
    assert error_text(error, hosts=("gpu01",)).endswith("remedy    gpunode plan --ssh gpu01 shows it")


def test_detect_names_gpus_and_says_what_is_not_known() -> None:
    model = PciDevice("0000:41:00.0", "10de", "2330", "0302", driver="nvidia")
    host = HostFacts(
        "gpu07",
        "gpu07",
        OsFacts("debian", "12", pretty_name="Debian 12"),
        KernelFacts("6.1.0-40"),
        True,
        pci=(model,) * 8,
        unread={"smi": "no answer in 10 s"},
    )
    text = detect_text(host, names={"0000:41:00.0": "H100 SXM5 80GB"})
    assert text.startswith("gpu07   Debian 12 · Linux 6.1.0-40 · x86_64, bare metal\n")
    assert "GPUs        8 × H100 SXM5 80GB, driver nvidia\n" in text
    assert "Not known   smi: no answer in 10 s" in text


@pytest.mark.parametrize(("release", "said"), [("6.1.0-42-amd64", "6.1.0-42-amd64"), ("", "(none)")])
def test_detect_names_an_image_that_is_being_built_and_its_own_kernel(release: str, said: str) -> None:
    host = HostFacts("gpu07", "gpu07", OsFacts("debian", "12", pretty_name="Debian 12"), KernelFacts(release), True)
    assert detect_text(replace(host, init="chroot")).startswith(
        f"gpu07   Debian 12 · Linux {said} · x86_64, an image that is being built\n"
    )


LOOK = Remedy(RepairAction.NONE, "look")
FAILED = RunReport(
    "gpu07",
    (
        StepResult("repo.cuda", StepStatus.DONE, seconds=1.2),
        StepResult("docker.default", StepStatus.FAILED, error="docker refuses it", evidence="line 3", remedy=LOOK),
    ),
    error="docker refuses it",
    code=ExitCode.FAILED,
)


def test_a_failed_run_says_the_step_the_reason_and_the_move_once() -> None:
    assert run_text(FAILED) == "\n".join(
        (
            "gpu07   failed after 1 step done",
            "  FAILED    docker.default   docker refuses it",
            "  evidence  line 3",
            "  remedy    look",
        )
    )


def test_an_error_that_names_its_step_is_said_once() -> None:
    named = replace(FAILED, error="docker.default: docker refuses it", evidence="line 3", remedy=LOOK)
    assert run_text(named) == run_text(FAILED)


def test_a_needed_reboot_comes_with_its_remedy() -> None:
    report = RunReport(
        "gpu07",
        reboot="nouveau holds a GPU",
        remedy=Remedy(RepairAction.REBOOT, "reboot it"),
        code=ExitCode.REBOOT_NEEDED,
    )
    assert run_text(report).splitlines() == [
        "gpu07   needs a reboot",
        "  reboot    nouveau holds a GPU",
        "  remedy    reboot it",
    ]


def test_what_is_kept_in_spite_of_a_known_cve_is_named_at_the_end() -> None:
    kept = (Kept("toolkit.install", "container toolkit 1.20.1"), Kept("driver.install", "580.95.05 has", beware=True))
    report = RunReport("gpu07", plan=Plan("gpu07", Spec(), "then", kept=kept))
    assert run_text(report).splitlines() == [
        "gpu07   no changes: this host matches the spec",
        "  beware    580.95.05 has",
    ]


def test_a_problem_does_not_repeat_the_name_its_line_begins_with() -> None:
    lost = HostOutcome("gpu05", ExitCode.UNREACHABLE, problem="gpu05: connection refused")
    assert fleet_check_text((lost,)).startswith("FAIL  gpu05   connection refused\n")
    assert fleet_run_text((lost,)).startswith("gpu05   connection refused\n")


def test_a_fleet_is_grouped_by_ending_worst_first() -> None:
    done = [HostOutcome(f"gpu0{n}", ExitCode.DONE, run=RunReport(f"gpu0{n}")) for n in (1, 2)]
    text = fleet_run_text([*done, HostOutcome("gpu07", ExitCode.FAILED, run=FAILED)], seconds_s=41)
    assert text.splitlines()[0] == "gpu07   failed after 1 step done"
    assert text.splitlines()[-2].startswith("gpu[01-02]   no changes")
    assert text.splitlines()[-1] == "3 hosts: 1 failed (1) · 2 done (0) · 41 s"


def test_hosts_that_were_skipped_or_not_begun_are_called_so_and_counted_apart() -> None:
    busy = HostOutcome("gpu01", ExitCode.UNSUPPORTED, problem="gpu01: the GPUs are in use", untouched=Untouched.SKIPPED)
    waiting = [not_begun(f"gpu0{n}", "the canary gpu02 failed") for n in (3, 4)]
    lines = fleet_run_text([busy, *waiting, HostOutcome("gpu02", ExitCode.FAILED, run=FAILED)]).splitlines()
    assert "gpu01   skipped: the GPUs are in use" in lines
    assert "gpu[03-04]   not begun: the canary gpu02 failed" in lines
    assert lines[-1] == "4 hosts: 1 failed (1) · 2 not begun (1) · 1 skipped (4) · 0.0 s"


def test_progress_is_a_line_and_quiet_is_none() -> None:
    end = Event(EventKind.STEP_END, "gpu07", "", "repo.cuda", StepStatus.DONE, 1.25)
    assert event_line(end) == "gpu07  done      repo.cuda  1.2 s"
    assert event_line(end, Style(verbose=-1)) is None


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    for text in (plan_text(PLAN, Style(width)), check_text(CHECK, Style(width)), run_text(FAILED, Style(width))):
        assert max(map(len, text.splitlines())) <= width


def test_colour_underlines_and_never_carries_the_meaning() -> None:
    coloured = check_text(CHECK, Style(100, colour=True))
    assert "\x1b[31;1mFAIL\x1b[0m" in cleaned(coloured, painted=True)
    assert "\x1b" not in check_text(CHECK, Style(100))


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["gpu01", "gpu02", "gpu03"], "gpu[01-03]"),
        (["gpu9", "gpu10"], "gpu10, gpu9"),
        (["root@h1:22", "10.0.0.1"], "10.0.0.1, root@h1:22"),
        (["b", "a"], "a, b"),
    ],
    ids=["neighbours fold", "widths stay apart", "addresses stay whole", "names are sorted"],
)
def test_fold_hosts(names: list[str], folded: str) -> None:
    assert fold_hosts(names) == folded


def test_small_forms() -> None:
    assert [seconds(s) for s in (0.42, 41, 725)] == ["0.4 s", "41 s", "12 min 5 s"]
    assert mask_url("http://u:p@ss@proxy:3128/") == "http://***@proxy:3128/"
    assert clean("a\x1b[31mb\n") == "a\\x1b[31mb\n"
