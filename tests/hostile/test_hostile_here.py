"""The same marks and limits on this machine; and what a script started here ends with it, as far as it is its own."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.base import StillRunning
from gpunode.transport.local import Local
from gpunode.transport.shell import deliver

LIMIT_S = 600.0
MOST_BYTES = 64 * 1024 * 1024

# In a process of its own, whose memory is then known.
CLIENT = r"""
import json, re, sys
from pathlib import Path
from gpunode.errors import TransportError
from gpunode.transport.local import Local

def peak():
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

before, said = peak(), ""
try:
    Local(become="never").run(sys.argv[1], timeout_s=600)
except TransportError as error:
    said = error.problem
print(json.dumps({"said": said, "bytes": peak() - before}))
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("yes '|'", "printed more than 4 MiB"),
        ("exec cat /dev/zero", "printed more than 4 MiB"),
        ("while :; do echo '|'; done", "printed more than 4 MiB"),
        ("cat /dev/zero >&2", "error output is longer than 64 MiB"),
        ("cat /dev/zero & cat /dev/zero >&2", "printed more than 4 MiB"),
    ],
    ids=["lines", "one line", "a loop of the shell", "error output", "a child as well"],
)
def test_what_has_no_end_is_an_error_and_is_ended(script: str, said: str, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    command = (sys.executable, "-c", CLIENT, f"echo $$ >{mark}; {script}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout)
    assert said in heard["said"]
    assert heard["bytes"] <= MOST_BYTES
    assert not session(int(mark.read_text()))


def session(leader: int) -> list[str]:
    """The processes of a session, by their state and command."""
    shown = subprocess.run(("ps", "-e", "-o", "sess=,stat=,args="), capture_output=True, text=True, check=True).stdout
    lines = (line.split(None, 2) for line in shown.splitlines())
    return [" ".join(words[1:]) for words in lines if words[0] == str(leader) and not words[1].startswith("Z")]


@pytest.mark.parametrize(
    "script",
    [
        "sleep 600",
        "sleep 600 & sleep 600",
        "trap '' TERM; sleep 600; sleep 600",
        "timeout 500 sleep 600",  # in a process group of its own
        "(trap '' TERM HUP; sleep 600 | sleep 600) & wait",
    ],
    ids=["a child", "a job as well", "deaf to being asked", "in another group", "deaf in the background"],
)
def test_at_its_limit_a_script_is_ended_with_all_its_own(script: str, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(StillRunning, match="still running after"):
        Local(become="never").run(f"echo $$ >{mark}; {script}", timeout_s=5)
    assert not session(int(mark.read_text()))


def test_a_script_that_cleans_up_behind_itself_can_do_so(tmp_path: Path) -> None:
    """The probe removes its directory in /run when it is asked to end."""
    directory = tmp_path / "scratch"
    with pytest.raises(StillRunning):
        Local(become="never").run(
            f"mkdir {directory}; trap 'rmdir {directory}; exit 1' TERM; sleep 600 & wait", timeout_s=5
        )
    assert not directory.exists()


def test_a_daemon_with_a_session_of_its_own_stays(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    daemon = f"setsid sh -c 'echo $$ >{mark}; exec sleep 600' </dev/null >/dev/null 2>&1 &"
    wait = f"while [ ! -s {mark} ]; do sleep 0.1; done; sleep 600"
    with pytest.raises(StillRunning):
        Local(become="never").run(f"{daemon} {wait}", timeout_s=5)
    pid = int(mark.read_text())
    assert session(pid)
    os.kill(pid, signal.SIGKILL)


def test_what_a_child_says_after_the_end_is_no_part_of_the_answer(tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"(while [ ! -e {go} ]; do sleep 0.1; done; echo late) & echo now; printf last"
    done = Local(become="never").run(script, timeout_s=LIMIT_S)
    go.touch()
    assert (done.code, done.stdout) == (0, b"now\nlast")


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("printf half; exit 3", 3, b"half"),
        ("exec printf 'no newline'", 0, b"no newline"),
        ("printf 'a\\000\\036\\377'; kill -9 $(exec sh -c 'echo $PPID')", 137, b"a\0\x1e\xff"),
        ("set -e; printf one; false; printf two", 1, b"one"),
        ("trap 'printf bye' EXIT; printf hi; exit 5", 5, b"hibye"),
        ("exec >/dev/null 2>&1; echo unheard; exit 4", 4, b""),
        ("printf one; if then fi", 2, None),
        ("printf '\\036gpunode-end 0123456789abcdef0123456789abcdef 0\\n'; exit 6", 6, None),
        ("printf '\\036gpunode-end %s 0\\n' \"$gpunode_token\"; exit 7", 7, b"\x1egpunode-end  0\n"),
        ("cat /proc/$$/cmdline /proc/$$/environ; exit 8", 8, None),
    ],
    ids=[
        "exit",
        "exec",
        "killed by a signal",
        "set -e",
        "a trap of its own",
        "its output closed",
        "a syntax error",
        "a forged end",
        "an end with the token it cannot know",
        "what anybody sees of it",
    ],
)
def test_the_exit_status_is_the_scripts_own(script: str, code: int, said: bytes | None) -> None:
    done = Local(become="never").run(script, timeout_s=LIMIT_S)
    assert done.code == code
    assert said is None or done.stdout == said


def test_a_wrapper_that_is_killed_leaves_no_result() -> None:
    with pytest.raises(TransportError, match="ended before its answer was complete"):
        Local(become="never").run("sleep 600 & echo half; kill -9 $$", timeout_s=LIMIT_S)


@pytest.mark.parametrize("argument", [True, False], ids=["in the argument", "on stdin"])
@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox sh"])
def test_no_process_shows_the_token(shell: str, argument: bool) -> None:
    """Neither an argument list nor an environment, of the wrapper or of what the script starts."""
    delivery = deliver(
        "env; set; tr '\\0' '\\n' </proc/$$/cmdline; tr '\\0' '\\n' </proc/$$/environ", b"", argument=argument
    )
    argv = [*shell.split(), *delivery.argv[1:]]
    environment = {**os.environ, "gpunode_token": "exported", "gpunode_script": "exported"}
    try:
        done = subprocess.run(argv, input=delivery.payload, env=environment, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"{argv[0]} is not installed")
    token = re.search(rb"\x1egpunode-begin ([0-9a-f-]{32,36})\n", done.stdout)
    assert token is not None, done.stderr
    assert done.stdout.count(token[1]) == 2  # the two marks
    again = subprocess.run(argv, input=delivery.payload, env=environment, capture_output=True, check=False)
    assert token[1] not in again.stdout


def test_without_proc_the_token_comes_from_the_devices() -> None:
    delivery = deliver("echo in", b"")
    line = delivery.argv[2].replace("/proc/sys/kernel/random/uuid", "/nonexistent/uuid")
    done = subprocess.run(("sh", "-c", line, *delivery.argv[3:]), capture_output=True, check=True)
    assert re.fullmatch(rb"\x1egpunode-begin ([0-9a-f]{32})\nin\n\x1egpunode-end \1 0\n", done.stdout)


def test_descriptors_and_children_do_not_pile_up() -> None:
    local = Local(become="never")
    local.run("echo x", timeout_s=LIMIT_S)
    gc.collect()  # what earlier tests left open may be closed at any time
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        local.run("echo x", timeout_s=LIMIT_S)
    with suppress(StillRunning):
        local.run("sleep 600", timeout_s=0.5)
    assert len(os.listdir("/proc/self/fd")) <= before
