"""A program of the site: its answers, its ends, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from gpunode.model.report import CheckOutcome, CheckReport, Finding, NotApplicable, Severity
from gpunode.remedy import RepairAction
from gpunode.site_checks.answer import outcome_of
from gpunode.site_checks.directory import ProgramCheck
from gpunode.site_checks.judge import ELSEWHERE, with_site_checks
from gpunode.site_checks.program import MOST_BYTES, Ended, run_program
from tests.site_checks.places import program

FACTS = b'{"facts": {}}\n'


FOUND = '{"outcome": "finding", "severity": "error", "summary": "2 of 8 links are down"}'


def said(checks: Path, body: str, limit_s: float = 10) -> CheckOutcome:
    path = str(program(checks, "x", body))
    return outcome_of(run_program((path,), FACTS, limit_s), path)


def reason(outcome: CheckOutcome) -> str:
    assert isinstance(outcome, NotApplicable)
    return outcome.reason


@pytest.mark.parametrize("body", ["exit 0", "echo fine", "echo 'fine | used=3%'", """echo '{"outcome": "pass"}'"""])
def test_it_passes(body: str, checks: Path) -> None:
    assert said(checks, body) is None


@pytest.mark.parametrize(
    ("body", "severity", "summary"),
    [
        ("echo '2 links are down | down=2'; exit 2", Severity.ERROR, "2 links are down"),
        ("echo '  1 link is   down'; echo more; exit 1", Severity.WARNING, "1 link is down"),
        ("exit 2", Severity.ERROR, "the program says nothing of what is wrong"),
    ],
)
def test_it_finds_something_by_line_and_code(body: str, severity: Severity, summary: str, checks: Path) -> None:
    found = said(checks, body)
    assert isinstance(found, Finding)
    assert (found.severity, found.summary) == (severity, summary)
    assert found.evidence.startswith(f"{checks}/x ended with code ")


def test_it_finds_something_by_json(checks: Path) -> None:
    answer = {"outcome": "finding", "severity": "warning", "summary": "a\nb", "remedy": "look", "action": "replace"}
    found = said(checks, f"cat <<'END'\n{json.dumps(answer)}\nEND")
    assert isinstance(found, Finding)
    assert (found.summary, found.evidence, found.severity) == ("a b", "", Severity.WARNING)
    assert (found.remedy.text, found.remedy.action) == ("look", RepairAction.REPLACE)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo no; exit 3", "unknown: the program ended with code 3: no"),
        ("echo why >&2; exit 127", "unknown: the program ended with code 127: why"),
        ("kill -9 $$", "unknown: the program was ended by signal 9"),
        ("echo '{'", "unknown: the program's answer is not as it should be: 1:2: "),
        ("echo '{}'", "outcome is none of pass, finding, unknown"),
        ("""echo '{"outcome": "pass", "outcome": "pass"}'""", "stands twice"),
        ("""echo '{"outcome": "pass", "id": "rt.present"}'""", "id is not a key"),
        ("""echo '{"outcome": "pass"}'; exit 1""", "printed JSON, and ended with code 1"),
        ("""echo '{"outcome": "finding", "summary": "x"}'""", "severity is missing"),
        ("""echo '{"outcome": "finding", "severity": "fatal", "summary": "x"}'""", "severity is none of"),
        ("""echo '{"outcome": "finding", "severity": "error", "summary": 5}'""", "summary is no text"),
        ("""echo '{"outcome": "finding", "severity": "error", "summary": "x", "action": []}'""", "action is none of"),
        ("""echo '{"outcome": "unknown", "reason": "no bus"}'""", "unknown: no bus"),
        ("""printf '{"outcome": "unknown", "reason": "\\377"}'""", "not UTF-8"),
        *(
            (f"printf '{out % FOUND}'", "printed JSON among other text")
            for out in ("warning: old\\n%s", "[%s]", "[\\n  %s\\n]")
        ),
        (f"printf '{FOUND}\\n%s' done", "not as it should be"),
        ("""printf '{"outcome": %0300d}' 0 | tr 0 '['""", "nested too deeply"),
    ],
)
def test_whatever_else_it_does_is_unknown(body: str, why: str, checks: Path) -> None:
    found = reason(said(checks, body))
    assert why in found
    assert found.startswith("unknown: ")


def test_a_byte_order_mark_hides_no_finding(checks: Path) -> None:
    assert isinstance(said(checks, f"printf '\\357\\273\\277{FOUND}'"), Finding)


def test_what_cannot_be_started_is_unknown(checks: Path) -> None:
    path = program(checks, "x", "")
    path.write_text("#!/nosuch/interpreter\n")
    assert "cannot be started: No such file" in reason(outcome_of(run_program((str(path),), FACTS), str(path)))


def test_it_has_the_facts_and_nothing_of_our_environment(checks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2")
    path = program(checks, "x", 'cat; pwd; umask; echo "$# $0"; env; ls -l /proc/self/fd | wc -l')
    lines = run_program((str(path),), FACTS).out.decode().splitlines()
    names = {line.partition("=")[0] for line in lines[4:-1]}
    assert lines[:4] == [FACTS.decode().strip(), "/", "0077", f"0 {path}"]
    assert {"PATH", "LC_ALL"} <= names <= {"PATH", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD"}
    assert int(lines[-1]) <= 6, "a file of gpunode's is open in it"  # 0, 1, 2, the directory, and the line of the total


def test_a_program_that_reads_nothing_holds_nobody_up(checks: Path) -> None:
    path = str(program(checks, "x", "exit 0"))
    assert run_program((path,), b"x" * (4 << 20)).code == 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    end = time.monotonic() + 10
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


@pytest.mark.parametrize("deaf", ["", "trap '' TERM HUP INT"], ids=["", "deaf"])
def test_one_that_hangs_is_ended_with_all_that_it_started(deaf: str, checks: Path) -> None:
    begin = time.monotonic()
    outcome = said(checks, f"{deaf}\nsleep 300 & echo $! >{checks}/pid; wait; wait; sleep 300", limit_s=0.5)
    assert reason(outcome).startswith("unknown: the program did not end within")
    assert time.monotonic() - begin < 5
    assert gone(int((checks / "pid").read_text()))


def test_what_it_left_in_the_background_goes_with_it(checks: Path) -> None:
    assert said(checks, f"sleep 300 & echo $! >{checks}/pid; echo fine") is None
    assert gone(int((checks / "pid").read_text()))


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_ended(stream: str, checks: Path) -> None:
    begin = time.monotonic()
    assert f"printed over {MOST_BYTES} bytes" in reason(said(checks, f"echo $$ >{checks}/pid; exec yes {stream}"))
    assert time.monotonic() - begin < 5
    assert gone(int((checks / "pid").read_text()))


def test_a_code_that_the_kernel_does_not_keep_is_no_pass(checks: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert reason(said(checks, "exit 2")).startswith("unknown: the program ended, and how is lost")
        assert reason(said(checks, "sleep 300", limit_s=0.5)).startswith("unknown: the program did not end within")
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_no_descriptor_stays_open(checks: Path) -> None:
    path = str(program(checks, "x", "echo fine"))
    run_program((path,), FACTS)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run_program((path,), FACTS)
    assert len(os.listdir("/proc/self/fd")) == before


def test_all_programs_together_have_a_limit() -> None:
    limits = []

    def slow(argv: tuple[str, ...], stdin: bytes, limit_s: float) -> Ended:
        limits.append(limit_s)
        clock[0] += 9
        return Ended(0)

    clock = [0.0]
    programs = [ProgramCheck(f"site.p{number}", f"/x/p{number}") for number in range(6)]
    report = with_site_checks(CheckReport("h"), programs, {}, stdin=b"", run=slow, now=lambda: clock[0])
    assert limits == [10, 10, 10, 3]
    assert [result.outcome for result in report.results.values()][:4] == [None] * 4
    assert reason(report.results["site.p5"].outcome).startswith("unknown: not run")


def test_elsewhere_it_is_not_run() -> None:
    report = with_site_checks(CheckReport("h"), [ProgramCheck("site.p", "/nosuch")], {}, stdin=None)
    assert reason(report.results["site.p"].outcome) == ELSEWHERE
    assert report.results["site.p"].foreign == "/nosuch"
