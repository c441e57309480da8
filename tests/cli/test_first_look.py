"""The look at this machine that begins before gpunode is loaded: once, for root, and nothing of it remains."""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import wraps
from importlib import import_module
from pathlib import Path

import pytest

from gpunode.cli.commands import run_words
from gpunode.cli.options.verb import with_defaults
from gpunode.cli.start.first_look import LOOKS, at_this_machine
from gpunode.errors import TransportError
from gpunode.transport.ahead import _running, start_ahead
from gpunode.transport.local import Local, end_ahead

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "examples/hosts/debian12-docker-build"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="nothing is started ahead for others than root")

# A sh that notes that it was started, and then is what it stands for.
COUNTING = '#!/bin/sh\necho "$PPID $$" >>"{log}"\nexec {sh} "$@"\n'
ASKS = (["check"], ["check", "--json"], ["detect"], ["plan", "--driver", "none"])
ASKS_OTHERWISE = (
    *(["check", flag] for flag in ("--list", "--explain=drv.nvml", "--help", "-h", "--fix", "--ssh=gpu01")),
    *(["check", "--unit", "timer"], ["check", "--recorded", str(RECORDED)], ["setup"], ["catalog", "gpus"], []),
    *(["check", "--ask-become-pass"], ["plan", "--become-pass-file", "x"], ["--version"]),
)


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A line for each shell that was started: its parent's process id, and its own."""
    log, real = tmp_path / "starts", shutil.which("sh")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").write_text(COUNTING.format(log=log, sh=real))
    (programs / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    log.touch()
    return log


def gpunode(*words: str) -> tuple[subprocess.Popen[str], str, str]:
    """The process, which has ended, and what it printed."""
    argv = (sys.executable, "-m", "gpunode", *words)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(timeout=120)
    return process, out, err


def by(process: subprocess.Popen[str], starts: Path) -> list[int]:
    """The shells that this process started itself."""
    pairs = (line.split() for line in starts.read_text().splitlines())
    return [int(pid) for parent, pid in pairs if int(parent) == process.pid]


def runs(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("words", ASKS, ids=" ".join)
def test_a_verb_of_this_machine_looks_ahead_where_its_user_is_root(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid, ahead in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        assert at_this_machine(words) is ahead


@pytest.mark.parametrize("words", ASKS_OTHERWISE, ids=" ".join)
def test_what_asks_another_host_none_or_later_does_not(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not at_this_machine(words)


@root_only
@pytest.mark.parametrize("words", [["detect", "--json"], ["check", "--json"]], ids=" ".join)
def test_the_machine_is_asked_once(starts: Path, words: list[str]) -> None:
    process, out, err = gpunode(*words)
    assert (process.returncode in (0, 1), err) == (True, "")
    assert out.startswith("{")
    assert len(by(process, starts)) == 1


@root_only
@pytest.mark.parametrize("words", [["check", "--list"], ["check", "--recorded", str(RECORDED)]], ids=" ".join)
def test_no_shell_is_started_for_a_verb_that_asks_nothing(starts: Path, words: list[str]) -> None:
    process, _, err = gpunode(*words)
    assert (process.returncode in (0, 1), err) == (True, "")
    assert starts.read_text() == ""


def test_before_the_look_next_to_nothing_is_loaded() -> None:
    """Each module that is loaded first puts the whole answer off."""
    looked = (
        "import sys, gpunode.cli.app, gpunode.transport.ahead; from gpunode.facts.probe_script import *; "
        "gpunode.transport.ahead.deliver(usual_probe_script(), b''); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-S", "-c", looked], capture_output=True, text=True, check=True, cwd=ROOT)
    late = {
        "subprocess",
        "re",
        "signal",
        "typing",
        "dataclasses",
        "pathlib",
        "json",
        "gpunode.errors",
        "gpunode.remedy",
        "gpunode.packages",
    }
    assert not late & set(loaded.stdout.split())


@root_only
def test_a_stdout_that_takes_nothing_is_said_before_leaving() -> None:
    argv = (sys.executable, "-m", "gpunode", "check", "--json")
    with open("/dev/full", "w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "cannot be printed: No space left on device" in done.stderr


@root_only
def test_wrong_words_leave_nothing_behind(starts: Path) -> None:
    process, out, err = gpunode("check", "--no-such-option")
    assert (process.returncode, out) == (2, "")
    assert "no-such-option" in err
    assert not any(runs(pid) for pid in by(process, starts))


def test_the_answer_of_a_script_that_was_started_ahead_is_the_scripts_own(starts: Path) -> None:
    script = "echo out; echo err >&2; head -c 300000 /dev/zero; exit 3"
    start_ahead(script)
    done = Local(become="never").run(script, timeout_s=60)
    assert (done.code, done.stdout[:4], len(done.stdout), done.stderr) == (3, b"out\n", 300004, b"err\n")
    assert len(starts.read_text().splitlines()) == 1, "it was started a second time"
    assert Local(become="never").run(script, timeout_s=60).code == 3
    assert len(starts.read_text().splitlines()) == 2, "an answer serves once"


def test_another_script_gets_its_own_answer(starts: Path) -> None:
    start_ahead("echo one")
    assert Local(become="never").run("echo two", timeout_s=60).stdout == b"two\n"
    assert Local(become="never").run("echo one", stdin=b"x", timeout_s=60).stdout == b"one\n"
    end_ahead()
    assert len(starts.read_text().splitlines()) >= 2


def test_nothing_remains_of_what_nobody_took(tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    start_ahead(f"echo $$ >{mark}; sleep 600 & echo $! >>{mark}; wait")
    end = time.monotonic() + 60
    while len(mark.read_text().split() if mark.exists() else ()) < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    end_ahead()
    assert not any(runs(pid) for pid in map(int, mark.read_text().split()))


def test_where_no_program_can_be_started_whoever_asks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    start_ahead("true")
    with pytest.raises(TransportError, match="sh"):
        Local(become="never").run("true", timeout_s=60)


def ahead(script: str) -> str:
    """What it prints, started ahead."""
    start_ahead(script)
    assert _running, "it was not started ahead"
    return Local(become="never").run(script, timeout_s=60).stdout.decode()


def test_a_script_that_is_started_ahead_has_nothing_of_ours(tmp_path: Path) -> None:
    """As subprocess starts one: no descriptor but its three, no signal that Python ignores, a session of its own."""
    with (tmp_path / "open").open("w") as left_open:
        os.set_inheritable(left_open.fileno(), True)
        script = 'readlink /proc/$$/fd/*; grep SigIgn /proc/$$/status; cut -d" " -f6 /proc/$$/stat; echo $$'
        *open_files, ignored, session, pid = ahead(script).splitlines()
    assert str(left_open.name) not in open_files
    assert len([name for name in open_files if "pipe:" in name]) >= 2
    assert int(ignored.split()[1], 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0
    assert session == pid


def test_it_ends_though_nobody_has_read_what_it_printed_yet() -> None:
    start_ahead("head -c 500000 /dev/zero")
    (process,) = _running.values()
    until = time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    done = Local(become="never").run("head -c 500000 /dev/zero", timeout_s=60)
    assert (done.code, len(done.stdout)) == (0, 500000)


def test_one_whose_end_the_kernel_keeps_to_itself_has_an_answer() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert ahead("echo here") == "here\n"
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_shell_that_cannot_be_started_ahead_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sh").write_text("#!/no/such/interpreter\n")
    (tmp_path / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    start_ahead("true")
    (process,) = _running.values()
    with pytest.raises(TransportError):
        Local(become="never").run("true", timeout_s=60)
    assert not runs(process.pid)
    assert all(stream.closed for stream in (process.stdout, process.stderr))
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # subprocess' own, of a child it lost
def test_there_may_be_no_shell_and_nobody_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        start_ahead("true")
        with pytest.raises(TransportError, match="no sh in its PATH"):
            Local(become="never").run("true", timeout_s=60)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_nobody_takes_is_ended_though_it_has_only_just_begun() -> None:
    for _ in range(10):
        start_ahead("sleep 600")
        (process,) = _running.values()
        end_ahead()
        assert not runs(process.pid)
        with pytest.raises(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


FEW_DESCRIPTORS = """
import os, resource
from gpunode.transport.ahead import start_ahead
from gpunode.transport.local import end_ahead
hard, opened = resource.getrlimit(resource.RLIMIT_NOFILE)[1], os.listdir("/proc/self/fd")
for most in range(4, 14):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    start_ahead("true")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    end_ahead()
    assert os.listdir("/proc/self/fd") == opened, most
"""


def test_where_descriptors_are_few_none_is_lost() -> None:
    subprocess.run([sys.executable, "-c", FEW_DESCRIPTORS], check=True, cwd=ROOT, stdin=subprocess.DEVNULL)


@root_only
@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_verb_alone_is_run_without_what_parses_options(words: list[str]) -> None:
    asked = f"import sys; from gpunode.cli.app import main; main({words!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert f"gpunode.cli.verbs.{words[0]}" in loaded
    assert not {"typer", "click"} & loaded


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_what_it_is_run_with_is_what_typer_gives_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(f"gpunode.cli.verbs.{words[0]}")
    verb, given = getattr(module, words[0]), list[dict[str, object]]()

    @wraps(verb)
    def noted(**values: object) -> int:
        given.append(inspect.signature(verb).bind(**values).arguments)
        return 7

    monkeypatch.setattr(module, words[0], noted)
    assert (run_words(list(words)), with_defaults(words[0])) == (7, 7)
    typers, ours = (inspect.signature(verb).bind(**values) for values in given)
    typers.apply_defaults()
    ours.apply_defaults()
    assert typers.arguments == ours.arguments
