"""gpunode runs, and what setup makes of an earlier run before it meets a host."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.again import AgainOptions
from gpunode.cli.options.groups import LiveOptions, OutputOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.run.apply_plans import apply_plans
from gpunode.cli.run.kept_run import SETUP, Order, keep_unplanned
from gpunode.cli.verbs.setup_again import chosen, file_of_each
from gpunode.cli.verbs.setup_again import kept_spec as kept_spec_of
from gpunode.cli.verbs.setup_rollout import Preparation
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.fleet.inventory.choice import Shard
from gpunode.fleet.rollout.drain import Closed, NodeIdentity, Note
from gpunode.fleet.rollout.rollout import Health
from gpunode.fleet.runs.directory import runs_home
from gpunode.fleet.runs.header import kept_spec
from gpunode.fleet.runs.read import find, read_run
from gpunode.fleet.runs.record import About, begin, go_on
from gpunode.masking import MASK
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, CheckResult, Finding, FleetReport, HostOutcome, Severity
from gpunode.model.run_record import HostState
from gpunode.model.spec import Spec
from gpunode.remedy import Remedy, RepairAction
from gpunode.specfile import load_file, parse_file, parse_spec
from gpunode.transport.recorded import Recorded
from tests.fleet.rollout.fakes import PLAN, Fleet

DOWN = HostOutcome("gpu02", ExitCode.UNREACHABLE, problem="gpu02: no answer\x1b[31m", evidence="timed out",
                   remedy=Remedy(RepairAction.WAIT, "look at it"))  # fmt: skip
PROOF = f"{'0' * 32}:{'0' * 64}"
FAR = ("127.0.0.1:1", "127.0.0.1:2")
FAR_SPEC = 'only: "driver"\nallow_no_gpu: "true"\n'
IN_FLEET = {"connection": (("inventory", "/srv/fleet.yaml"),)}
EVIL = "\x1b]0;x\x07\u202e"


def kept(about: About, *outcomes: HostOutcome, end: bool = True) -> str:
    with begin(about, complain=print) as record:
        for outcome in outcomes:
            record.host_ends(outcome)
        if end:
            record.end(outcomes)
    if not end:  # a controller that is gone; this one lives
        path = runs_home() / record.id / "run.json"
        path.write_text(path.read_text().replace(record.header.controller.boot, "another boot"))
    return record.id


def a_setup(**more: object) -> str:
    done = HostOutcome("gpu01", ExitCode.DONE)
    about = About("setup", ("gpu01", "gpu02", "gpu03"), "ann", **{"spec": "", **more})  # type: ignore[arg-type]
    return kept(about, done, DOWN, HostOutcome("gpu03", ExitCode.DONE))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, " ".join(err.split())


def test_the_list_is_newest_first_and_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "runs") == (0, f"no run is kept in {runs_home()}\n", "")
    ids = [a_setup() for _ in range(3)]
    code, out, _ = said(capsys, "runs", "--last", "2")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["run", ids[2], ids[1], "and"])
    assert "3      ann  1 unreachable (3) · 2 done (0)" in out
    assert out.endswith("and 1 older\n")
    code, out, _ = said(capsys, "runs", "--last", "2", "--json")
    data = json.loads(out)
    assert (data["schema"], data["older"], [run["id"] for run in data["runs"]]) == ("gpunode.runs/1", 1, ids[:0:-1])
    assert data["runs"][0]["codes"] == {"0": 2, "3": 1}


@pytest.mark.parametrize("codes", ['{"12": 1}', '{"0": 10000000000}', '{"0": -1}', EVIL])
def test_an_odd_run_hides_no_other(codes: str, capsys: pytest.CaptureFixture[str]) -> None:
    odd, fine = a_setup(), a_setup()
    path = runs_home() / odd / "run.json"
    path.write_text(path.read_text().replace('{"0": 2, "3": 1}', codes))
    code, out, err = said(capsys, "runs")
    assert (code, [line.split()[0] for line in out.splitlines()[1:]]) == (0, [fine])
    assert f"{odd}/run.json is not the record of a run" in err
    assert "\x1b" not in err


def test_a_run_is_shown_with_what_to_paste(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = a_setup()
    code, out, err = said(capsys, "runs", "show", "last")
    assert (code, err) == (0, "")
    assert out.partition("\n\n")[2].splitlines() == [
        r"gpu02   no answer\x1b[31m",
        "  evidence  timed out",
        "  remedy    look at it",
        "gpu01, gpu03   done",
        "3 hosts: 1 unreachable (3) · 2 done (0)",
        "not done  --ssh gpu02",
        f"again     gpunode setup --retry-failed {run_id}",
    ]
    _, out, _ = said(capsys, "runs", "show", run_id, "--json")
    data = json.loads(out)
    assert (data["code"], data["not_ended"], data["failed"]) == (3, 0, "gpu02")
    assert data["hosts"][1]["problem"] == "gpu02: no answer\x1b[31m"


def test_a_run_is_written_as_an_inventory_of_ansibles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(About("setup", FAR, "ann"), HostOutcome(FAR[0], ExitCode.DONE), replace(DOWN, target=FAR[1]))
    path = tmp_path / "left.yml"
    assert main(["runs", "show", "last", "--format", "ansible", "--output", str(path)]) == 0
    code, _, err = said(capsys, "check", "--inventory", str(path), "--limit", "gpunode_not_done")
    assert (code, "127.0.0.1_2" in err, "127.0.0.1_1" in err) == (ExitCode.UNREACHABLE, True, False)


def test_hosts_of_an_inventory_are_pasted_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = a_setup(**IN_FLEET)
    assert "not done  --inventory /srv/fleet.yaml --limit gpu02\n" in said(capsys, "runs", "show", run_id)[1]
    assert "not done" not in said(capsys, "runs", "merge", run_id, a_setup())[1], "hosts of two inventories"


def test_shards_are_one_report_with_the_worst_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = a_setup()
    other = kept(About("setup", ("gpu02", "gpu04"), "bob"), HostOutcome("gpu02", ExitCode.DONE),
                 HostOutcome("gpu04", ExitCode.DONE))  # fmt: skip
    elsewhere = tmp_path / "shard"
    shutil.move(runs_home() / other, elsewhere)
    code, out, _ = said(capsys, "runs", "merge", one, str(elsewhere), one)
    assert code == 0, "of gpu02 the later word counts"
    assert "gpu[01-04]   done" in out
    assert f"note gpu02: {other} counts, {one} is older" in " ".join(out.split())
    half = kept(About("setup", ("gpu05",), "bob"), end=False)
    code, out, _ = said(capsys, "runs", "merge", one, half, "--json")
    assert code == ExitCode.FAILED, "what has not ended is no success"
    assert (json.loads(out)["not_ended"], json.loads(out)["code"]) == (1, ExitCode.FAILED)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["runs", "show"], "missing argument"),
        (["runs", "show", "../x"], "there is no run ../x"),
        (["runs", "show", EVIL], "there is no run"),
        (["runs", "merge", "/nosuch"], "/nosuch is no directory of a run"),
        (["runs", "merge", "/etc"], "not the record of a run"),
        (["runs", "--last", "0"], "1 to 1000"),
        (["runs", "--last", "3", "show", "last"], "--last is typed behind show"),
        (["runs", "shwo"], "did you mean show"),
        (["setup", "--yes", "--resume", "x"], "there is no run x"),
        (["setup", "--yes", "--resume", "x", "--attach", "y"], "--resume and --attach exclude each other"),
        (["setup", "--yes", "--retry-failed", "--plan", "x"], "--plan is of no earlier run"),
        (["setup", "--yes", "--retry-failed"], "there is no run of setup yet"),
    ],
    ids=lambda words: " ".join(words)[:40].encode("ascii", "replace").decode() if isinstance(words, list) else None,
)
def test_a_wrong_command_line_is_exit_2(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "")
    assert problem in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("more", "words", "problem"),
    [
        ({}, ["--retry-failed", "--recorded", "x"], "--retry-failed and --recorded exclude each other"),
        ({}, ["--retry-failed", "--ssh", "gpu02,gpu99"], "has no host gpu99"),
        ({}, ["--attach", "last"], "--yes has nothing to answer"),
        ({"connection": (("jump", "ann:cnry01@bastion"),)}, ["--retry-failed"], "no whole --jump"),
        (IN_FLEET, ["--retry-failed", "--ssh", "gpu02,$x"], "remedy name them with --limit 'gpu02,$x'"),
        ({}, ["--retry-failed", "--ssh", "gpu01"], "--retry-failed is about none of these hosts"),
        ({"spec": "driver: 5x\n"}, ["--retry-failed"], "the spec of run"),
        ({"spec": "nosuch: 1\n"}, ["--retry-failed"], "nosuch is not a key of a spec"),
        ({"spec": None, "spec_proof": PROOF}, ["--retry-failed"], "specs of their own remedy give the same with"),
        ({"spec": None, "spec_proof": PROOF}, ["--retry-failed", "--driver", "580"], "it was not this one"),
        ({"spec": None}, ["--retry-failed"], "its record has none"),
        ({"connection": (("user", 5),)}, ["--retry-failed"], "no option of SSH in user"),
        ({"connection": (("port", "x"),)}, ["--retry-failed"], "--port 'x' is not a whole number"),
        ({"connection": (("identity", "x"),)}, ["--retry-failed"], "no option of SSH in identity"),
        ({"connection": (("host_key", "off"),)}, ["--retry-failed"], "strict, accept-new"),
        ({}, ["--retry-failed", "--driver", "5x"], "580.178.04"),
    ],
)  # fmt: skip
def test_what_an_earlier_run_says_is_read_as_if_it_were_typed(
    more: dict[str, object], words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    a_setup(**more)
    code, _, err = said(capsys, "setup", "--yes", *words)
    assert (code, problem in err) == (2, True), err


@pytest.mark.parametrize("flag", ["retry_failed", "resume"])
def test_the_rules_of_a_spec_file_that_is_typed_again_count(flag: str, tmp_path: Path) -> None:
    """Else the checks after a change count what the site has acknowledged."""
    run_id = kept(About("setup", FAR, "ann", spec=FAR_SPEC), end=False)
    path = tmp_path / "spec.yaml"
    path.write_text(FAR_SPEC + "profile: docker\n")
    wanted = SpecOptions(spec=path)
    again = chosen(AgainOptions(**{flag: run_id}))
    assert again is not None
    file = file_of_each(again, kept_spec_of(again, wanted), (), wanted)
    assert file(None).rules.profile == "docker"  # type: ignore[arg-type]  # the same for every host


def test_a_run_that_goes_on_takes_no_other_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = kept(About("setup", ("gpu01",), "ann", spec=""), end=False)
    (tmp_path / "spec.yaml").write_text("driver: 580\n")
    for words in (("--driver", "580"), ("--spec", str(tmp_path / "spec.yaml"))):
        code, _, err = said(capsys, "setup", "--yes", "--resume", run_id, *words)
        assert (code, f"cannot change what run {run_id} is about" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        (("--mirror", "https://mirror/token=cnry01/nv", "--only", "driver"), 2),
        (("--mirror", "https://mirror/token=cnry02/nv", "--only", "driver", "--allow-no-gpu"), 2),
        (("--mirror", "https://mirror/token=cnry01/nv", "--only", "driver", "--allow-no-gpu"), 3),
    ],
    ids=["nothing typed", "a flag fewer", "another password", "the same"],
)
def test_a_run_whose_spec_is_withheld_goes_on_with_the_same_alone(
    words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = parse_spec(FAR_SPEC + 'mirror: "https://mirror/token=cnry01/nv"\n')
    text, proof = kept_spec(secret)
    run_id = kept(About("setup", FAR, "ann", spec=text, spec_proof=proof), end=False)
    found, _, err = said(capsys, "setup", "--yes", "--resume", run_id, *words)
    assert (found, "cnry" in err, f"the spec of run {run_id} is not kept" in err) == (code, False, code == 2), err
    assert "cnry" not in (runs_home() / run_id / "run.json").read_text()


def test_a_retry_takes_another_file_in_place_of_a_spec_that_is_withheld(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(About("setup", FAR, "ann", spec_proof=PROOF), DOWN)
    (tmp_path / "spec.yaml").write_text(FAR_SPEC)
    words = ("--spec", str(tmp_path / "spec.yaml"))
    assert said(capsys, "setup", "--yes", "--retry-failed", *words)[0] == ExitCode.UNREACHABLE


def in_fleet(tmp_path: Path, *names: str) -> dict[str, object]:
    """The record of a run over an inventory that has these hosts now; none of them answers."""
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("port: 1\nhosts:\n" + "".join(f"  {name}: {{address: 127.0.0.1}}\n" for name in names))
    return {"connection": (("inventory", str(fleet)),), "spec": FAR_SPEC}


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        ((), 2, "the inventory has gpu02, gpu03 no more"),
        (("--limit", "gpu01"), 3, ""),
        (("--exclude", "gpu04"), 3, ""),
        (("--limit", "gpu02"), 2, "gpu02 is not there"),
    ],
)
def test_hosts_that_the_inventory_has_no_more_are_missed(
    words: tuple[str, ...], code: int, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = ("gpu01", "gpu02", "gpu03", "gpu04")
    down = [replace(DOWN, target=name) for name in hosts]
    kept(About("setup", hosts, "ann", **in_fleet(tmp_path, "gpu01", "gpu04")), *down)  # type: ignore[arg-type]
    found, _, err = said(capsys, "setup", "--yes", "--retry-failed", *words)
    assert (found, what in err) == (code, True), err


@pytest.mark.parametrize("flag", ["--retry-failed", "--resume", "--attach"])
def test_other_hosts_of_the_inventory_are_none_of_the_runs(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run had --limit or --shard, or they came since; what is printed at its end is pasted as it is."""
    fleet = in_fleet(tmp_path, "gpu01", "gpu02", "gpu03")
    kept(About("setup", ("gpu01", "gpu02"), "ann", **fleet), DOWN, end=flag == "--retry-failed")  # type: ignore[arg-type]
    yes = () if flag == "--attach" else ("--yes",)
    code, _, err = said(capsys, "setup", *yes, flag, "last")
    # --attach has nothing to watch: no host was begun
    assert (code, "gpu03" in err) == (1 if flag == "--attach" else ExitCode.UNREACHABLE, False), err
    if flag == "--attach":
        return
    code, _, err = said(capsys, "setup", *yes, flag, "last", "--limit", "gpu02,gpu03")
    assert (code, "has no host gpu03" in err) == (2, True), err
    code, _, err = said(capsys, "setup", *yes, flag, "last", "--limit", "gpu0*")
    assert (code, "gpu03" in err) == (ExitCode.UNREACHABLE, False), err


def test_a_shard_without_a_host_to_retry_has_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = HostOutcome("gpu01", ExitCode.DONE)
    about = About("setup", ("gpu01", "gpu02"), "ann", **in_fleet(tmp_path, "gpu01", "gpu02"))  # type: ignore[arg-type]
    run_id = kept(about, done, DOWN)
    shards = [Shard(number, 99) for number in range(1, 100)]
    well = next(one for one in shards if one.has("gpu01"))
    nobody = next(one for one in shards if not one.has("gpu01") and not one.has("gpu02"))
    for shard in (f"{well.number}/99", f"{nobody.number}/99"):
        code, _, err = said(capsys, "setup", "--yes", "--retry-failed", run_id, "--shard", shard)
        assert (code, f"in shard {shard}: nothing to do" in err) == (0, True), err
    assert len(list(runs_home().iterdir())) == 1


STAGED = ("--canary", "1", "--max-failures", "0")
REBOOTS = ("--reboot", "if-needed", "--max-reboots", "1")


@pytest.mark.parametrize("flag", ["--resume", "--retry-failed"])
@pytest.mark.parametrize(
    ("typed", "now", "taken", "not_taken"),
    [
        (STAGED, (), "--canary 1, --max-failures 0 (what", "--batch"),
        (STAGED, ("--canary", "2"), "--max-failures 0 (what", "--canary 1"),
        (STAGED, ("--on-host-error", "continue"), "--canary 1 (what", "--max-failures"),
        (("--on-host-error", "stop"), ("--max-failures", "3"), "", "as in run"),
        (REBOOTS, (), "--max-reboots 1 (what", "--canary"),
        ((), (), "", "as in run"),
        (STAGED, STAGED, "", "as in run"),
    ],
    ids=[
        "all",
        "but for one that is typed now",
        "but for the one that is typed in place of it",
        "and the other way round",
        "reboots",
        "none was typed",
        "all are typed again",
    ],
)
def test_a_run_goes_on_as_it_was_to_go_through_its_hosts(
    flag: str,
    typed: tuple[str, ...],
    now: tuple[str, ...],
    taken: str,
    not_taken: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--ssh", ",".join(FAR), "--only", "driver", "--allow-no-gpu")
    assert said(capsys, "setup", "--yes", *words, *typed)[0] == ExitCode.UNREACHABLE
    header = read_run(find("last", "setup")).header
    run_id = kept(About("setup", FAR, "ann", spec=header.spec, rollout=tuple(header.rollout.items())), end=False)
    code, _, err = said(capsys, "setup", "--yes", flag, run_id, *now)
    assert (code, taken in err, not_taken in err) == (ExitCode.UNREACHABLE, True, False), err
    if taken:
        assert f"as in run {run_id}: {taken}" in err


def test_without_a_reboot_no_limit_of_them_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    options = (("max_reboots", "1"), ("reboot_timeout", "1800"))
    run_id = kept(About("setup", FAR, "ann", spec=f"{FAR_SPEC}reboot: if-needed\n", rollout=options))
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed", run_id, "--reboot", "never")
    assert (code, "--max-reboots" in err, "--reboot-timeout" in err) == (ExitCode.UNREACHABLE, False, False), err


@pytest.mark.parametrize(
    ("kept_options", "what"),
    [
        ({"canary": True}, "no value of --canary"),
        ({"drain_slurm": "yes"}, "no value of --drain-slurm"),
        ({"canary": "many"}, "--canary 'many'"),
        ({"drain_kubernetes": f"/home/{MASK}/config"}, "no whole --drain-kubernetes"),
        ({"drain_kubernetes": "/nosuch/config"}, "--drain-kubernetes /nosuch/config is no file"),
        ({"not_after": "2026-01-01T06:00:00+00:00"}, "--not-after 2026-01-01 06:00 +0000 has passed"),
    ],
    ids=[
        "a switch for a text",
        "a text for a switch",
        "no number",
        "masked",
        "a file that is gone",
        "a window of then",
    ],
)
def test_what_a_record_has_of_the_rollout_is_read_as_if_it_were_typed(
    kept_options: dict[str, object],
    what: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\nexit 1\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    run_id = kept(About("setup", FAR, "ann", spec=FAR_SPEC, rollout=tuple(kept_options.items())), end=False)
    code, _, err = said(capsys, "setup", "--yes", "--resume", run_id)
    assert (code, what in err) == (2, True), err


def test_a_time_by_the_clock_is_kept_as_the_moment_that_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--ssh", ",".join(FAR), "--only", "driver", "--allow-no-gpu", "--not-after", "06:00")
    assert said(capsys, "setup", "--yes", *words)[0] == ExitCode.UNREACHABLE
    moment = read_run(find("last", "setup")).header.rollout["not_after"]
    assert isinstance(moment, str)
    closes = datetime.fromisoformat(moment)
    assert (closes.hour, closes.tzinfo is None, closes > datetime.now(timezone.utc)) == (6, False, True)


RULES = "severity: {drv.loaded: warning}\nacknowledge: [{id: drv.dkms, reason: known, expires: 2099-01-01}]\n"


def test_the_rules_of_checks_are_the_runs_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(f"{FAR_SPEC}{RULES}")
    words = ("--ssh", ",".join(FAR), "--spec", str(file))
    assert said(capsys, "setup", "--yes", *words)[0] == ExitCode.UNREACHABLE
    header = read_run(find("last", "setup")).header
    assert parse_file(header.rules).rules == load_file(file).rules
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed")
    assert (code, f"as in run {header.id}: its spec's rules of checks" in err) == (ExitCode.UNREACHABLE, True), err
    assert read_run(find("last", "setup")).header.rules == header.rules
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed", "--spec", str(file))
    assert (code, "rules of checks" in err) == (ExitCode.UNREACHABLE, False), err


def test_only_a_setup_is_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = kept(About("undo", ("gpu01",), "ann"), HostOutcome("gpu01", ExitCode.FAILED))
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed", run_id)
    assert (code, f"run {run_id} is no setup" in err) == (2, True)


def test_where_nothing_failed_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    kept(About("setup", ("gpu01",), "ann", spec=""), HostOutcome("gpu01", ExitCode.DONE))
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed")
    assert (code, "ended well; there is nothing to retry" in err) == (0, True)
    code, out, _ = said(capsys, "setup", "--yes", "--retry-failed", "--json")
    assert (code, json.loads(out)["hosts"]) == (0, [])
    assert said(capsys, "setup", "--yes", "--retry-failed", "--format", "jsonl")[1] == ""


def test_nothing_left_to_resume_is_no_success_where_a_host_failed(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = a_setup()
    assert said(capsys, "setup", "--yes", "--resume", run_id)[0] == ExitCode.UNREACHABLE


@pytest.mark.parametrize(("flag", "code"), [("--resume", 5), ("--attach", 5)])
def test_the_end_that_a_killed_controller_did_not_write_is_written(
    flag: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = HostOutcome("gpu01", ExitCode.ROLLBACK_FAILED)
    run_id = kept(About("setup", ("gpu01", "gpu02"), "ann", spec=""), broken, replace(DOWN, target="gpu02"), end=False)
    yes = [] if flag == "--attach" else ["--yes"]
    assert said(capsys, "setup", *yes, flag, run_id)[0] == code
    header = read_run(run_id).header
    assert (bool(header.ended), header.codes) == (True, {3: 1, 5: 1})


def test_what_has_not_ended_makes_no_roll_back_well(capsys: pytest.CaptureFixture[str]) -> None:
    broken = HostOutcome("gpu01", ExitCode.ROLLBACK_FAILED)
    run_id = kept(About("setup", ("gpu01", "gpu02"), "ann", spec=""), broken, end=False)
    assert said(capsys, "setup", "--attach", run_id)[0] == ExitCode.ROLLBACK_FAILED
    assert not read_run(run_id).header.ended


def test_an_ending_that_is_lost_is_said_before_a_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = a_setup()
    path = runs_home() / run_id / "outcomes.jsonl"
    path.write_text(path.read_text() + "{\n")
    assert "1 line of the record torn or odd" in said(capsys, "setup", "--yes", "--resume", run_id)[2]
    path.unlink()
    code, _, err = said(capsys, "setup", "--yes", "--resume", run_id)
    assert (code, "have ended is not known" in err) == (2, True)


def test_a_network_that_is_gone_ends_no_host_of_a_run_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    run_id = kept(About("setup", FAR, "ann", spec=FAR_SPEC), end=False)
    for _ in range(2):
        assert said(capsys, "setup", "--yes", "--resume", run_id)[0] == ExitCode.UNREACHABLE
        assert [host.state for host in read_run(run_id).hosts] == [HostState.WAITING] * 2


def test_attach_does_not_take_the_end_of_a_run_away(capsys: pytest.CaptureFixture[str]) -> None:
    """After a second Ctrl-C a run has its end, and hosts that were left at work."""
    with begin(About("setup", FAR[:1], "ann", spec=FAR_SPEC), complain=print) as record:
        record.host_begins(FAR[0])
        record.end([HostOutcome(FAR[0], ExitCode.FAILED)])
    assert said(capsys, "setup", "--attach", record.id)[0] == ExitCode.UNREACHABLE
    past = read_run(record.id)
    assert (bool(past.header.ended), past.hosts[0].state) == (True, HostState.BEGUN)


def test_a_host_that_ended_well_is_named_where_it_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    kept(About("setup", FAR, "ann", spec=FAR_SPEC), HostOutcome(FAR[0], ExitCode.DONE), replace(DOWN, target=FAR[1]))
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed", "--ssh", ",".join(FAR))
    assert (code, "--retry-failed leaves 127.0.0.1:1 alone: it ended well" in err) == (3, True)


def test_hosts_that_cannot_be_reached_are_the_last_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Else a retry would be of the run before."""
    a_setup()
    words = ("--ssh", "127.0.0.1:1,127.0.0.1:2", "--user", "root", "--allow-no-gpu", "--only", "driver")
    code, _, err = said(capsys, "setup", "--yes", *words)
    assert (code, "not done --ssh 127.0.0.1:1,127.0.0.1:2 again gpunode setup --retry-failed" in err) == (3, True)
    _, out, _ = said(capsys, "runs", "show", "last", "--json")
    data = json.loads(out)
    assert [(host["target"], host["code"]) for host in data["hosts"]] == [("127.0.0.1:1", 3), ("127.0.0.1:2", 3)]
    kept_now = json.loads((runs_home() / data["runs"][0]["id"] / "run.json").read_text())
    assert (kept_now["connection"], kept_now["spec"]) == ({"user": "root"}, 'only: "driver"\nallow_no_gpu: "true"\n')


def test_where_hosts_have_specs_of_their_own_a_retry_asks_for_what_was_typed_over_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A retry would else want of a host what was another's, or not what was typed."""
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "groups:\n  new:\n    hosts: {a: {address: 127.0.0.1, port: 1}}\n    spec: {driver: '580'}\n"
        "  old:\n    hosts: {b: {address: 127.0.0.1, port: 2}}\n    spec: {driver: '595'}\n"
    )
    typed = ("--only", "driver", "--allow-no-gpu")
    assert said(capsys, "setup", "--yes", "--inventory", str(fleet), *typed)[0] == ExitCode.UNREACHABLE
    _, out, _ = said(capsys, "runs", "show", "last", "--json")
    header = json.loads((runs_home() / json.loads(out)["runs"][0]["id"] / "run.json").read_text())
    assert (header["spec"], bool(header["spec_proof"])) == (None, True)
    assert header["connection"]["inventory"] == str(fleet)
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed")
    assert (code, "hosts had specs of their own" in err) == (2, True)
    assert said(capsys, "setup", "--yes", "--retry-failed", *typed)[0] == ExitCode.UNREACHABLE, "as it was typed"


def test_a_name_with_a_password_in_it_is_not_kept_and_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    kept(About("setup", ("ann:cnry01@gpu01", "gpu02"), "ann", spec=""), DOWN)
    code, _, err = said(capsys, "setup", "--yes", "--retry-failed")
    assert (code, "has no whole name of MASKED@gpu01" in err) == (2, True)
    assert not [path for path in runs_home().rglob("*") if path.is_file() and "cnry" in path.read_text()]


def test_a_host_that_where_leaves_out_is_none_of_the_runs() -> None:
    left_out = HostOutcome("gpu01", ExitCode.DONE, left_out="gpu.arch is ada")
    named = tuple(Host(Recorded(b"", name)) for name in ("gpu01", "gpu02"))
    run = keep_unplanned(SETUP, named, FleetReport((left_out, DOWN)), LiveOptions())
    header = read_run(run.run).header
    assert (header.hosts, header.codes) == (("gpu02",), {ExitCode.UNREACHABLE: 1})


def test_who_gets_no_plan_when_a_run_goes_on_is_still_to_be_done() -> None:
    """Else a host that the network hides for a moment is none to go on with any more."""
    past = read_run(kept(About("setup", ("gpu01", "gpu02"), "ann", spec=""), end=False))
    named = tuple(Host(Recorded(b"", name)) for name in ("gpu01", "gpu02"))
    planned = FleetReport((HostOutcome("gpu01", ExitCode.DONE, plan=Plan("gpu01", Spec(), "")), DOWN))
    done = HostOutcome("gpu01", ExitCode.DONE)
    report = apply_plans(
        named,
        planned,
        LiveOptions(),
        OutputOptions(),
        order=Order("setup", past=past),
        host_work=lambda run, plan: done,
    )
    assert [host.code for host in report.hosts] == [ExitCode.DONE, ExitCode.UNREACHABLE]
    assert read_run(past.header.id).in_state(HostState.WAITING) == ("gpu02",)


class Closing:
    """A scheduler whose node stays closed: it cannot be opened again."""

    name = "a scheduler"

    def close(self, node: NodeIdentity, note: Note) -> Closed:
        note(("open", node.target))
        return Closed(node.target, ("open", node.target))

    def clear(self, node: NodeIdentity, closed: Closed, stop: Callable[[], bool]) -> None:
        pass

    def reopen(self, command: tuple[str, ...]) -> str:
        return "it does not answer"


def test_what_a_run_leaves_closed_and_owes_is_in_its_record() -> None:
    health = Health(lambda target: CheckReport(target, {}), {"gpu01": frozenset({("drv.loaded", "")})})
    fleet = Fleet(["gpu01"], schedulers=(Closing(),), health=health)
    planned = FleetReport((HostOutcome("gpu01", ExitCode.DONE, plan=PLAN),))
    ended = HostOutcome("gpu01", ExitCode.FAILED)
    apply_plans(
        (Host(Recorded(b"", "gpu01")),),
        planned,
        LiveOptions(),
        OutputOptions(),
        host_work=lambda run, plan: ended,
        rollout=fleet.rollout,
    )
    past = read_run(find("last"))
    assert past.closed == (("gpu01", "open gpu01"),)
    assert past.failing == {"gpu01": frozenset({("drv.loaded", "")})}


@pytest.mark.parametrize("flag", ["--resume", "--retry-failed"])
def test_who_goes_on_with_a_run_knows_what_it_left_closed(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def run(*words: object, **_: object) -> int:
        seen.extend((word.left_closed, word.owing) for word in words if isinstance(word, Preparation))
        seen.extend((word.closed, word.owing) for word in words if isinstance(word, Order))
        return 0

    monkeypatch.setattr("gpunode.cli.verbs.setup._run", run)
    run_id = kept(About("setup", FAR, "ann", spec=FAR_SPEC), end=False)
    with go_on(read_run(run_id), print) as record:
        record.host_begins(FAR[0], [("rt.docker-live", "")])
        record.host_closed(FAR[0], ("open it",))
    past = runs_home() / run_id / "run.json"
    past.write_text(past.read_text().replace(record.header.controller.boot, "another boot"))
    assert main(["setup", "--yes", flag, run_id]) == 0
    left = (((FAR[0], "open it"),), {FAR[0]: frozenset({("rt.docker-live", "")})})
    assert seen == [left, left], "and so does its record, for a retry of the retry"


def test_nothing_is_asked_where_nothing_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The host that was at work is away and may be in its reboot: the question would be about nothing."""
    run_id = kept(About("setup", FAR, "ann", spec=f"{FAR_SPEC}reboot: if-needed\n"), end=False)
    with go_on(read_run(run_id), print) as record:
        record.host_begins(FAR[0])
    path = runs_home() / run_id / "run.json"
    path.write_text(path.read_text().replace(record.header.controller.boot, "another boot"))

    def planned(host: Host, *_: object) -> HostOutcome:
        away = replace(DOWN, target=FAR[0])
        ready = HostOutcome(str(host), ExitCode.DONE, plan=replace(PLAN, target=str(host)))
        return away if str(host) == FAR[0] else ready

    monkeypatch.setattr("gpunode.cli.verbs.setup._planned", planned)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    code, out, err = said(capsys, "setup", "--resume", run_id)
    why = f"{FAR[0]} was at work in the interrupted run and may not be back from its reboot"
    assert code == ExitCode.FAILED
    assert f"nothing begins: {why}" in " ".join(f"{out} {err}".split())
    assert "[y/N]" not in err
    past = read_run(run_id)
    assert (past.in_state(HostState.BEGUN), past.in_state(HostState.WAITING)) == ((FAR[0],), (FAR[1],))


@pytest.mark.parametrize("well", [True, False])
def test_attach_takes_no_host_for_well_that_the_run_left_worse(
    well: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = kept(About("setup", FAR, "ann", spec=FAR_SPEC), end=False)
    with go_on(read_run(run_id), print) as record:
        record.host_begins(FAR[0], [])
        record.host_closed(FAR[0], ("open it",))
    path = runs_home() / run_id / "run.json"
    path.write_text(path.read_text().replace(record.header.controller.boot, "another boot"))
    found = None if well else Finding("docker is down", "seen", DOWN.remedy)
    broken = CheckResult("rt.docker-live", Severity.ERROR, found)
    monkeypatch.setattr(Preparation, "check_now", lambda _, host: CheckReport(str(host), {broken.id: broken}))
    monkeypatch.setattr("gpunode.fleet.rollout.health._AGAIN_AFTER_S", ())
    monkeypatch.setattr("gpunode.fleet.apply_one.wait_for_killed", lambda host, say: None)
    nothing = Plan(FAR[0], Spec(), "")
    monkeypatch.setattr(
        "gpunode.cli.verbs.plan.planned", lambda host, spec: HostOutcome(str(host), ExitCode.DONE, plan=nothing)
    )
    _, out, err = said(capsys, "setup", "--attach", run_id)
    assert read_run(run_id).failing == ({} if well else {FAR[0]: frozenset()})
    assert ("rt.docker-live" in out + err) is not well
    assert "open it" in err, "its node is closed in any case"
