"""What is kept of a run, read back; and what is made of it by a crash, a full disk and by who else may write there."""

from __future__ import annotations

import copy
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import ExitCode, UsageError
from gpunode.fleet.run_log import RunLog
from gpunode.fleet.runs.controller import lives, this_controller
from gpunode.fleet.runs.directory import OUTCOMES, RUN
from gpunode.fleet.runs.header import header_text, kept_spec, parse_header
from gpunode.fleet.runs.merge import merge, with_earlier
from gpunode.fleet.runs.outcome import LONGEST_LINE, begun_line, ended_line, lean, parse_outcome
from gpunode.fleet.runs.read import find, latest, read_copy, read_run
from gpunode.fleet.runs.record import About, Record, begin, go_on, refuse_living
from gpunode.fleet.runs.shared import SharedParts
from gpunode.model.plan import Kept
from gpunode.model.report import FleetReport, HostOutcome, RunReport, StepResult, StepStatus, Untouched
from gpunode.model.run_record import HostState, PastHost, PastRun
from gpunode.model.spec import Spec
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.run_text import endings
from gpunode.render.runs_text import run_shown_text
from gpunode.specfile import parse_spec
from tests.render.values import PLAN

MEND = Remedy(RepairAction.CONFIGURE, "mend it")
REFUSED = Kept("docker.default", "daemon.json is broken", refused=True, evidence="line 3", remedy=MEND)
BEWARE = Kept("driver", "a CVE is open", beware=True)
FAILED = StepResult(
    "driver.install", StepStatus.FAILED, seconds=3.0, error="apt-get: 100", evidence="E: x", remedy=MEND
)
ENDINGS = [
    HostOutcome("gpu01", ExitCode.DONE, run=RunReport("gpu01", (StepResult("a", StepStatus.DONE),), PLAN)),
    HostOutcome("gpu02", ExitCode.UNREACHABLE, problem="gpu02: no answer", evidence="timed out", remedy=MEND),
    HostOutcome(
        "gpu03",
        ExitCode.FAILED,
        run=RunReport("gpu03", (FAILED, StepResult("b", StepStatus.SKIPPED)), PLAN, code=ExitCode.FAILED,
                      error="driver.install: apt-get: 100"),
    ),
    HostOutcome(
        "gpu04",
        ExitCode.UNSUPPORTED,
        run=RunReport("gpu04", plan=replace(PLAN, kept=(*PLAN.kept, REFUSED, BEWARE)), code=ExitCode.UNSUPPORTED),
    ),
    HostOutcome(
        "gpu05",
        ExitCode.REBOOT_NEEDED,
        run=RunReport("gpu05", reboot="nouveau is loaded", remedy=MEND, code=ExitCode.REBOOT_NEEDED, by_hand=("ls",)),
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "gpunode"


def about(*hosts: str, **more: object) -> About:
    return replace(About("setup", hosts, "root"), **more)  # type: ignore[arg-type]


def complain(text: str) -> None:
    raise AssertionError(text)


def kept(*hosts: str, begun: tuple[str, ...] = (), done: tuple[str, ...] = ()) -> Record:
    record = begin(about(*hosts), complain)
    for name in begun:
        record.host_begins(name)
    for name in done:
        record.host_ends(HostOutcome(name, ExitCode.DONE))
    return record


@pytest.mark.parametrize("outcome", ENDINGS, ids=lambda outcome: outcome.code.name)
def test_a_host_is_shown_later_as_it_was_at_the_end(outcome: HostOutcome) -> None:
    host = parse_outcome(ended_line(outcome, "2026-11-26T00:00:00.000+00:00"))
    assert isinstance(host, PastHost)
    assert host.outcome is not None
    assert endings([host.outcome], ssh=True) == endings([outcome], ssh=True)
    assert endings([lean(outcome)], ssh=True) == endings([outcome], ssh=True)
    assert (host.state, host.done) == (HostState.ENDED, outcome.code is ExitCode.DONE)
    assert ended_line(host.outcome, host.at) == ended_line(outcome, host.at)


def test_a_lean_outcome_holds_no_plan_of_a_host_that_has_ended() -> None:
    slim = lean(replace(ENDINGS[0], plan=PLAN))
    assert (slim.plan, slim.facts) == (None, None)
    assert slim.run is not None
    assert slim.run.plan is not None
    assert (slim.run.plan.steps, slim.run.plan.driver) == ((), None)


def test_hosts_with_equal_plans_share_their_steps() -> None:
    share = SharedParts()
    one, two = share.plan(copy.deepcopy(PLAN)), share.plan(replace(copy.deepcopy(PLAN), target="gpu08"))
    assert (one, two) == (PLAN, replace(PLAN, target="gpu08"))
    assert all(mine is other for mine, other in zip(one.steps, two.steps, strict=True))
    assert one.driver is two.driver


def test_all_is_on_the_disk_before_the_first_host_begins(state: Path) -> None:
    with begin(about("gpu01", connection=(("user", "root"),), spec='driver: "580"\n'), complain) as record:
        header = parse_header((state / "runs" / record.id / RUN).read_text())
        assert (header, header.controller) == (record.header, this_controller())
        assert lives(header.controller) is True
    for directory in (state, state / "runs", state / "runs" / record.id):
        assert directory.stat().st_mode & 0o777 == 0o700
    for file in (RUN, OUTCOMES):
        assert (state / "runs" / record.id / file).stat().st_mode & 0o777 == 0o600


def test_ten_thousand_hosts() -> None:
    names = tuple(f"root@gpu{number:05}.a-long-name-for-a-cluster.example.org:2222" for number in range(10_000))
    with begin(about(*names), complain) as record:
        for name in names[:9_000:9]:
            record.host_ends(HostOutcome(name, ExitCode.DONE))
        record.end([HostOutcome(name, ExitCode.DONE) for name in names])
    past = read_run(record.id)
    assert past.header.hosts == names
    assert len(past.not_done) == 9_000
    assert (past.header.codes, past.torn) == ({0: 10_000}, 0)


@pytest.mark.parametrize("cut", [2, 20, 100])
def test_a_torn_last_line_is_said_and_the_others_count(state: Path, cut: int) -> None:
    with kept("a", "b", "c", begun=("a", "b"), done=("a", "b")) as record:
        pass
    path = state / "runs" / record.id / OUTCOMES
    path.write_bytes(path.read_bytes()[:-cut])
    past = read_run(record.id)
    assert (past.torn, [host.state for host in past.hosts]) == (
        1, [HostState.ENDED, HostState.BEGUN, HostState.WAITING],
    )  # fmt: skip
    with go_on(past, complain) as again:
        again.host_ends(HostOutcome("b", ExitCode.DONE))
    past = read_run(record.id)
    assert (past.torn, past.not_done) == (1, ("c",)), "the next line went down with the torn one"


@pytest.mark.parametrize(
    "line",
    ["{}", "[]", "null", '"x"', "{", "\x00", '{"schema": "gpunode.run-outcome/1", "state": "ended", "target": "a"}',
     '{"schema": "gpunode.run-outcome/1", "state": "ended", "target": "a", "code": 77, "remedy": {}, "run": null}',
     '{"schema": "gpunode.run-outcome/1", "state": "ended", "target": "a", "code": 0, "remedy": [], "run": []}',
     '{"schema": "gpunode.run-outcome/1", "state": "at-work", "target": "nobody", "at": "x"}',
     '{"schema": "gpunode.run-outcome/2", "state": "at-work", "target": "a", "at": "x"}',
     "[" * 5000, "9" * 5000, '{"target": ["a"], "state": {}}'],
)  # fmt: skip
def test_an_odd_line_is_counted_and_nothing_else(state: Path, line: str) -> None:
    with kept("a", "b", done=("b",)) as record:
        pass
    with (state / "runs" / record.id / OUTCOMES).open("a") as file:
        file.write(f"{line}\n")
    past = read_run(record.id)
    assert (past.torn, past.not_done) == (1, ("a",))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "{" * 200, '{"schema": "gpunode.run/1"}', '{"schema": "gpunode.run/1", "schema": 1}'],
)
def test_an_odd_header_is_one_message(state: Path, text: str) -> None:
    with kept("a") as record:
        pass
    (state / "runs" / record.id / RUN).write_text(text)
    with pytest.raises(UsageError, match="is not the record of a run"):
        read_run(record.id)


@pytest.mark.parametrize(
    ("key", "value"),
    [("id", "../../etc"), ("verb", "detect"), ("hosts", "gpu01"), ("hosts", [1]), ("hosts", ["a", "a"]),
     ("controller", {"host": "a", "pid": -1, "started": "", "boot": ""}), ("controller", []), ("spec", 1),
     ("connection", []), ("codes", {"x": 1}), ("codes", {"0": True}), ("codes", {"77": 1}),
     ("codes", {"0": 10**9}), ("hosts", []), ("hosts", ["a\nagain"]), ("hosts", [""]), ("hosts", ["a\x1b"]),
     ("over_ssh", 1), ("ended", None), ("spec_proof", "x"), ("spec_proof", "é:é"), ("rollout", "--canary"),
     ("rules", None), ("rollout", ["--canary"]), ("rollout", {"canary\x1b": "1"}), ("rollout", {"canary": 1}),
     ("rollout", {"drain_slurm": False}),
     ("rollout", {"batch": "1" * 4097}), ("rollout", {"a" * n: "1" for n in range(1, 41)} | {"b": "1"})],
)  # fmt: skip
def test_a_header_is_of_its_types(key: str, value: object) -> None:
    with kept("a") as record:
        pass
    data = json.loads(header_text(record.header)) | {key: value}
    with pytest.raises(ValueError, match=r"."):
        parse_header(json.dumps(data))


def others_may_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o020)


def anothers(path: Path) -> None:
    os.chown(path, 12345, -1)


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_fifo(path: Path) -> None:
    if path.is_file():
        path.unlink()
    else:
        path.rename(path.with_name("elsewhere"))
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [others_may_write, anothers, a_link, a_fifo])
@pytest.mark.parametrize("what", ["runs", "run", "run.json", "outcomes.jsonl"])
def test_what_others_may_have_written_is_not_read(state: Path, what: str, spoil: Callable[[Path], None]) -> None:
    if spoil is anothers and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    with kept("a") as record:
        pass
    directory = state / "runs" / record.id
    spoil({"runs": state / "runs", "run": directory}.get(what, directory / what))
    with pytest.raises(UsageError) as refused:
        read_run(record.id)
    assert "not trusted" in refused.value.problem


def test_a_directory_of_ones_own_that_others_may_write_to_is_closed_to_them_before_a_run(state: Path) -> None:
    (state / "runs").mkdir(parents=True)
    (state / "runs").chmod(0o775)
    with kept("a") as record:
        assert (state / "runs").stat().st_mode & 0o777 == 0o755
    assert read_run(record.id).not_done == ("a",)


def test_what_is_made_above_the_runs_is_for_its_owner_only_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """~/.local holds ~/.local/bin and the packages of this user's Python."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".local" / "state"))
    before = os.umask(0)
    try:
        with kept("a"):
            made = (tmp_path / ".local", tmp_path / ".local/state", tmp_path / ".local/state/gpunode")
            assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3
    finally:
        os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_nothing_begins_in_a_directory_of_anothers(state: Path) -> None:
    (state / "runs").mkdir(parents=True)
    os.chown(state / "runs", 12345, -1)
    with pytest.raises(UsageError, match="not trusted"):
        begin(about("a"), complain)
    assert list((state / "runs").iterdir()) == []


@pytest.mark.parametrize("run_id", ["..", ".", "", "/etc", "x", "20261121T145501Z-1/../..", "20261121T145501Z-1\x00"])
def test_no_id_leads_out_of_the_directory(run_id: str) -> None:
    with kept("a"):
        pass
    with pytest.raises(UsageError, match="there is no run"):
        read_run(run_id)


@pytest.mark.parametrize(
    ("spec", "text", "withheld"),
    [
        (None, None, False),
        (Spec(mirror="https://mirror.example/nv"), 'mirror: "https://mirror.example/nv"\n', False),
        (Spec(proxy="http://ann:cnry01@proxy:3128"), None, True),
        (Spec(mirror="https://ann:cnry02@mirror/nv"), None, True),
    ],
    ids=["none", "a mirror", "a proxy's password", "a mirror's"],
)
def test_a_spec_with_a_secret_is_not_kept(state: Path, spec: Spec | None, text: str | None, withheld: bool) -> None:
    kept_text, proof = kept_spec(spec)
    assert (kept_text, bool(proof)) == (text, withheld)
    with begin(replace(about("a"), spec=text, spec_proof=proof), complain) as record:
        pass
    whole = (state / "runs" / record.id / RUN).read_text()
    assert "cnry" not in whole
    header = read_run(record.id).header
    assert header.spec_proof == proof
    assert header.spec is None or parse_spec(header.spec) == spec


def test_a_secret_in_a_hosts_ending_is_masked() -> None:
    line = ended_line(
        HostOutcome("a", ExitCode.FAILED, problem="curl https://me:cnry01@r.example: --token cnry02"), "t"
    )
    assert "cnry" not in line


def test_a_host_called_as_the_runs_own_file_keeps_its_log_elsewhere(state: Path) -> None:
    with kept("outcomes", begun=("outcomes",)) as record:
        RunLog(record.id, complain).write("outcomes", '{"kind": "note"}\n')
    assert read_run(record.id).torn == 0
    assert (state / "runs" / record.id / "outcomes_.jsonl").exists()


def test_a_full_disk_is_said_once_and_stops_nothing() -> None:
    said: list[str] = []
    with begin(about("a", "b"), said.append) as record:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, record._file)
        os.close(full)
        record.host_begins("a")
        record.host_ends(HostOutcome("a", ExitCode.DONE))
    assert said == [f"gpunode: the record of run {record.id} has gaps: No space left on device"]


def test_a_full_disk_stops_nothing_where_the_remarks_go_to_it_too() -> None:
    """As with `nohup` or `2>log`."""

    def say(text: str) -> None:
        said.append(text)
        raise OSError(errno.ENOSPC, "No space left on device")

    said: list[str] = []
    with begin(about("a"), say) as record:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, record._file)
        os.close(full)
        with suppress(OSError):
            record.host_begins("a")
        record.host_ends(HostOutcome("a", ExitCode.DONE))
    assert len(said) == 1


SHORT = """
import resource, sys
from gpunode.errors import ExitCode
from gpunode.fleet.runs.read import read_run
from gpunode.fleet.runs.record import About, begin
from gpunode.model.report import HostOutcome
with begin(About("setup", ("a", "b", "c"), "root"), print) as record:
    record.host_ends(HostOutcome("a", ExitCode.DONE))
    size = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (__import__("os").fstat(record._file).st_size + 30, size[1]))
    record.host_ends(HostOutcome("b", ExitCode.DONE))
    resource.setrlimit(resource.RLIMIT_FSIZE, size)
    record.host_ends(HostOutcome("c", ExitCode.DONE))
print(read_run(record.id).torn, *read_run(record.id).not_done)
"""


def test_half_a_line_on_a_disk_that_is_just_full_is_said() -> None:
    ran = subprocess.run((sys.executable, "-c", SHORT), capture_output=True, text=True, check=True)
    said, read = ran.stdout.splitlines()
    assert said.endswith("has gaps: File too large")
    assert read == "1 b"


def test_the_longest_ending_is_one_that_is_read_again() -> None:
    words = "\x01" * 5000
    step = StepResult(
        words, StepStatus.FAILED, error=words, evidence=words, remedy=Remedy(RepairAction.CONFIGURE, words)
    )
    run = RunReport("a", (step,) * 600, error=words, code=ExitCode.FAILED, by_hand=(words,) * 600)
    line = ended_line(HostOutcome("a", ExitCode.FAILED, run=run, problem=words), "t")
    assert len(line.encode()) <= LONGEST_LINE
    host = parse_outcome(line)
    assert isinstance(host, PastHost)
    assert host.outcome is not None
    assert host.outcome.run is not None
    assert len(host.outcome.run.steps) == 500


def test_a_thread_that_was_left_at_work_writes_nothing_after_the_end() -> None:
    with kept("a") as record:
        record.end([])
    record.host_ends(HostOutcome("a", ExitCode.DONE))
    assert read_run(record.id).not_done == ("a",)


def test_two_runs_of_one_second_are_two() -> None:
    ids = []
    for _ in range(12):
        with kept("a") as record:
            ids.append(record.id)
    assert len(set(ids)) == 12
    assert latest(5) == (ids[:-6:-1], 7), "the newest first"
    assert (find("last"), find("last", "setup"), find("x")) == (ids[-1], ids[-1], "x")
    with pytest.raises(UsageError, match="no run of undo"):
        find("last", "undo")


def test_the_last_run_is_asked_for_by_its_id_once_the_clock_was_set_back(state: Path) -> None:
    with kept("a") as record:
        old = state / "runs" / record.id
    ahead = state / "runs" / f"2999{record.id[4:]}"
    old.rename(ahead)
    (ahead / "run.json").write_text((ahead / "run.json").read_text().replace(record.id, ahead.name))
    with kept("b"), pytest.raises(UsageError, match="cannot be told") as refused:
        find("last")
    assert refused.value.evidence.startswith(f"{ahead.name} began in the future")


def test_a_directory_with_logs_alone_is_no_run(state: Path) -> None:
    RunLog("20991121T145501Z-1", complain).write("a", "{}\n")
    assert latest(9) == ([], 0)
    with pytest.raises(UsageError, match="is not the record of a run"):
        read_run("20991121T145501Z-1")


def test_a_controller_is_known_by_more_than_its_pid() -> None:
    mine = this_controller()
    ended = subprocess.Popen((sys.executable, "-c", ""))
    ended.wait()
    assert lives(mine) is True
    assert lives(replace(mine, started="1")) is False, "the pid is another's by now"
    assert lives(replace(mine, boot="another")) is False
    assert lives(replace(mine, pid=ended.pid)) is False
    assert lives(replace(mine, host="elsewhere")) is None


def test_the_lock_says_who_lives_where_the_process_cannot_be_seen() -> None:
    with kept("a") as record:
        past = replace(read_run(record.id), lives=None)
        for refuse in (refuse_living, lambda past: go_on(past, complain)):
            with pytest.raises(UsageError, match=f"run {record.id} is still at work"):
                refuse(past)
    refuse_living(past)


def test_of_two_that_go_on_with_one_run_the_second_is_refused() -> None:
    """Both have read the record before either took the lock."""
    with kept("a", "b", begun=("a",)):
        pass
    read = read_run(find("last"))
    with go_on(read, complain) as record:
        record.host_ends(HostOutcome("a", ExitCode.DONE))
    header = read_run(record.id).header
    with pytest.raises(UsageError, match=f"another gpunode has gone on with run {record.id}"):
        go_on(read, complain)
    assert read_run(record.id).header == header
    with go_on(read_run(record.id), complain):
        pass


@pytest.mark.parametrize("what", ["a file", "a link to nothing"])
@pytest.mark.parametrize("name", ["", "runs"])
def test_what_stands_in_the_place_of_a_directory_ends_a_run_before_it_begins(state: Path, name: str, what: str) -> None:
    path = state / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "a file":
        path.touch()
    else:
        path.symlink_to("nowhere")
    with pytest.raises(UsageError, match="cannot be made") as refused:
        begin(about("a"), complain)
    assert refused.value.evidence == f"{path}: File exists"


def test_a_run_of_which_no_ending_is_kept_does_not_go_on(state: Path) -> None:
    with kept("a", done=("a",)) as record:
        pass
    (state / "runs" / record.id / OUTCOMES).unlink()
    read = replace(read_run(record.id), lives=False)
    for refuse in (refuse_living, lambda read: go_on(read, complain)):
        with pytest.raises(UsageError, match="have ended is not known"):
            refuse(read)


def past(run_id: str, *hosts: PastHost, verb: str = "setup") -> PastRun:
    record = parse_header(header_text(replace(kept(*(host.target for host in hosts)).header, id=run_id, verb=verb)))
    return PastRun(record, hosts)


def ended(target: str, at: str, code: ExitCode = ExitCode.DONE) -> PastHost:
    return PastHost(target, HostState.ENDED, at, HostOutcome(target, code))


ONE, TWO = "20261121T145501Z-1", "20261121T145502Z-2"


def test_of_a_host_in_two_runs_the_later_word_counts_in_any_order() -> None:
    one = past(ONE, ended("a", "2026-01-01T02", ExitCode.FAILED), ended("b", "2026-01-01T02"), PastHost("c"))
    two = past(TWO, ended("a", "2026-01-01T01"), ended("c", "2026-01-01T01"), ended("d", "2026-01-01T01"))
    for runs in ((one, two), (two, one)):
        merged = merge(runs)
        codes = {host.target: host.outcome.code for host in merged.hosts if host.outcome}
        assert codes == {"a": 1, "b": 0, "c": 0, "d": 0}
        told = {(o.target, o.run, o.by) for o in merged.overruled}
        assert told == {("a", TWO, ONE)}, "what never began in a run says nothing there"


def test_runs_of_two_verbs_are_no_report() -> None:
    with pytest.raises(UsageError, match="setup and undo"):
        merge((past(ONE, PastHost("a")), past(TWO, PastHost("a"), verb="undo")))


def test_a_copy_from_elsewhere_is_shown_though_others_may_write_there(state: Path) -> None:
    with kept("a", done=("a",)) as record:
        pass
    copy = (state / "runs" / record.id).rename(state / "copy")
    copy.chmod(0o777)
    assert [host.done for host in read_copy(copy).hosts] == [True]
    (copy / OUTCOMES).unlink()
    os.mkfifo(copy / OUTCOMES)
    with pytest.raises(UsageError, match="not trusted"):
        read_copy(copy)
    with pytest.raises(UsageError, match="no directory of a run"):
        read_copy(copy / RUN)


def test_a_run_that_went_on_ends_with_all_its_hosts() -> None:
    one = past(ONE, ended("a", "1", ExitCode.FAILED), PastHost("b", HostState.BEGUN, "1"), PastHost("c"), PastHost("d"))
    whole = with_earlier(one, FleetReport((HostOutcome("b", ExitCode.DONE), HostOutcome("c", ExitCode.DONE))))
    assert [(host.target, int(host.code)) for host in whole.hosts] == [("a", 1), ("b", 0), ("c", 0), ("d", 1)]
    assert whole.hosts[3].problem == "not begun: the run was interrupted"


def test_a_host_that_is_left_out_of_a_run_that_goes_on_has_not_ended_by_that() -> None:
    one = past(ONE, ended("a", "1", ExitCode.FAILED), PastHost("b", HostState.BEGUN, "1"), PastHost("c"))
    out = tuple(HostOutcome(name, ExitCode.DONE, left_out="gpu.arch is ada") for name in "abc")
    whole = with_earlier(one, FleetReport(out))
    assert [(host.target, int(host.code), host.left_out) for host in whole.hosts] == [(n, 1, "") for n in "abc"]
    assert whole.hosts[1].problem == "at work when the run was interrupted"


def test_a_killed_controller_leaves_the_command_that_opens_what_it_closed() -> None:
    with kept("gpu01", "gpu02", "gpu03", "gpu04") as record:
        for name in ("gpu01", "gpu02", "gpu03"):
            record.host_closed(name, (f"kubectl uncordon {name}", "scontrol resume"))
        record.host_begins("gpu02")
        record.host_closed("gpu03", ("scontrol resume",))
        record.host_closed("gpu03", ())
        record.host_ends(HostOutcome("gpu03", ExitCode.DONE))
    past = read_run(record.id)
    assert past.torn == 0
    assert past.closed == tuple(
        (name, command) for name in ("gpu01", "gpu02") for command in (f"kubectl uncordon {name}", "scontrol resume")
    )
    assert past.in_state(HostState.WAITING) == ("gpu01", "gpu04"), "a host that is closed has not begun for that"
    with go_on(past, complain) as again:
        again.host_ends(HostOutcome("gpu02", ExitCode.FAILED))
    assert read_run(record.id).hosts[1].closed == past.hosts[1].closed, "how it ended does not open it"
    shown = run_shown_text(merge([past]))
    assert "gpu01 was left closed to new work: once it is well, run kubectl uncordon gpu01" in shown
    assert "gpu03 was left" not in shown


STEPS = (StepResult("driver.install", StepStatus.DONE),)
WRONG = frozenset({("rt.docker-live", ""), ("health.ecc", "pci 0000:41:00.0")})


@pytest.mark.parametrize(
    ("ends", "owed"),
    [
        (None, WRONG),
        (HostOutcome("gpu01", ExitCode.FAILED, problem="apt failed"), WRONG),
        (HostOutcome("gpu01", ExitCode.REBOOT_NEEDED, run=RunReport("gpu01", STEPS)), WRONG),
        (HostOutcome("gpu01", ExitCode.LOCKED, problem="another gpunode took over this host's lock"), WRONG),
        (HostOutcome("gpu01", ExitCode.DONE), None),
        (HostOutcome("gpu01", ExitCode.UNSUPPORTED, problem="busy", untouched=Untouched.SKIPPED), None),
    ],
    ids=["at work", "failed", "to be rebooted", "its lock was lost", "well", "skipped"],
)
def test_what_failed_on_a_host_before_it_was_changed_is_kept_until_it_is_well(
    ends: HostOutcome | None, owed: frozenset[tuple[str, str]] | None
) -> None:
    with begin(about("gpu01", "gpu02"), complain) as record:
        record.host_begins("gpu01", WRONG)
        if ends:
            record.host_ends(ends)
        record.host_begins("gpu02")
    past = read_run(record.id)
    assert past.failing == ({} if owed is None else {"gpu01": owed})


def test_a_host_that_is_begun_again_is_held_against_what_it_was_at_first() -> None:
    with begin(about("gpu01"), complain) as record:
        record.host_begins("gpu01", WRONG)
        record.host_begins("gpu01", WRONG | {("drv.loaded", "")})
    assert read_run(record.id).failing == {"gpu01": WRONG}


def test_a_host_without_a_failure_is_held_against_that() -> None:
    with begin(about("gpu01"), complain) as record:
        record.host_begins("gpu01", frozenset())
    assert read_run(record.id).failing == {"gpu01": frozenset()}


@pytest.mark.parametrize("failing", ['"x"', "[1]", '[["a"]]', '[["a", "b", "c"]]', "{}", "7"])
def test_odd_words_about_what_failed_are_no_whole_line(failing: str) -> None:
    line = begun_line("gpu01", "t", [("a", "b")]).replace('[["a", "b"]]', failing)
    with pytest.raises(ValueError, match=r"another form|unpack"):
        parse_outcome(line)


def test_a_run_knows_from_the_start_what_an_earlier_one_left_closed() -> None:
    closed = (("gpu01", "open it"), ("gpu01", "and this"), ("gpu02", "open that"))
    with begin(about("gpu01", "gpu02", closed=closed), complain) as record:
        record.host_closed("gpu02", ())
    assert read_run(record.id).closed == closed[:2]
    with begin(
        about("gpu01", "gpu02", closed=closed, owing={"gpu01": WRONG, "gpu02": frozenset()}), complain
    ) as record:
        pass
    assert read_run(record.id).closed == closed
    assert read_run(record.id).failing == {"gpu01": WRONG, "gpu02": frozenset()}


BUSY = HostOutcome("gpu01", ExitCode.UNSUPPORTED, problem="busy", untouched=Untouched.SKIPPED)
HELD = HostOutcome("gpu01", ExitCode.LOCKED, problem="another gpunode is at work")
AWAY = HostOutcome("gpu01", ExitCode.UNREACHABLE, problem="no answer")


@pytest.mark.parametrize("ends", [BUSY, HELD, AWAY], ids=["busy", "held", "away"])
def test_what_a_host_owes_outlives_a_run_that_did_not_come_to_it(ends: HostOutcome) -> None:
    """A retry of a retry: the first one broke it, the second changed nothing."""
    with begin(about("gpu01", "gpu02", owing={"gpu01": WRONG}), complain) as record:
        record.host_begins("gpu01", WRONG | {("drv.loaded", "")})
        record.host_closed("gpu01", ["open it"])
        record.host_ends(ends)
        record.host_closed("gpu01", [])
    assert read_run(record.id).failing == {"gpu01": WRONG}
    with begin(about("gpu01", owing={"gpu01": WRONG}), complain) as record:
        record.host_ends(HostOutcome("gpu01", ExitCode.DONE))
    assert read_run(record.id).failing == {}


def test_a_host_that_this_run_alone_did_not_touch_owes_nothing() -> None:
    """What fails on it later is nothing of this run's."""
    for ends in (BUSY, HostOutcome("gpu01", ExitCode.REBOOT_NEEDED, run=RunReport("gpu01"))):
        with begin(about("gpu01"), complain) as record:
            record.host_begins("gpu01", WRONG)
            record.host_ends(ends)
        assert read_run(record.id).failing == {}


def test_a_line_that_says_nothing_of_a_host_is_none() -> None:
    with pytest.raises(ValueError, match="another form"):
        parse_outcome(json.dumps({"schema": "gpunode.run-outcome/1", "at": "t", "target": "gpu01"}))
