"""However the probe ends, nothing of it is left on the host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpunode.facts.probe_script import probe_script
from tests.facts.hosts import make_root
from tests.hostile.users import needs_root, probe_here

WAIT_S = 60
# A shell starts its background jobs deaf to INT and QUIT, nohup deaf to HUP, and no trap of a child brings that back.
HEARING = """import os, signal, sys
for sign in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
    signal.signal(sign, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])"""
PLACES = ("/run", "/dev/shm", "/tmp", "/var/tmp")


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


def left(pid: int) -> list[Path]:
    return [path for place in PLACES if (path := Path(place, f".gpunode-probe.{pid}")).exists()]


@contextmanager
def probing(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A probe whose nvidia-smi runs until the file beside it is there."""
    answer = tmp_path / "answer"
    ends = f"i=0; while [ ! -e {answer} ] && [ $i -lt 1200 ]; do sleep 0.1; i=$((i+1)); done"
    root = make_root(tmp_path / "root", {"nvidia-smi": f"#!/bin/sh\ntrap '' HUP INT TERM QUIT\n{ends}\necho late\n"})
    environment = {**os.environ, "GPUNODE_ROOT": str(root), "GPUNODE_SMI_LIMIT_S": "120"}
    with subprocess.Popen(
        (sys.executable, "-c", HEARING, "sh", "-s"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as running:
        try:
            assert running.stdin is not None
            running.stdin.write(probe_script().encode())
            running.stdin.close()
            assert until(lambda: any((path / "smi.pid").exists() for path in left(running.pid)))
            yield running, answer
        finally:
            answer.touch()


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "PIPE"])
def test_a_signal_leaves_nothing(name: str, tmp_path: Path) -> None:
    with probing(tmp_path) as (running, _):
        running.send_signal(signal.Signals[f"SIG{name}"])
        assert until(lambda: running.poll() is not None)
        assert left(running.pid) == []


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "PIPE"])
def test_a_signal_just_when_its_directory_is_made_leaves_nothing(name: str) -> None:
    """It comes to all of a session: to the shell, and to what makes the directory, once it is made."""
    program = f"""mkdir() {{ command mkdir "$@"; kill -s {name} $$; sh -c 'kill -s {name} $PPID'; }}"""
    with subprocess.Popen(
        (sys.executable, "-c", HEARING, "sh", "-s"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        answer, _ = one.communicate(f"{program}\n{probe_script()}".encode(), timeout=WAIT_S)
    assert (one.returncode, answer) == (130, b"@gpunode-facts 1\n")
    assert left(one.pid) == []


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "PIPE"])
def test_a_signal_just_when_its_directory_goes_leaves_nothing(name: str, tmp_path: Path) -> None:
    program = f"""rm() {{ kill -s {name} $$; sh -c 'kill -s {name} $$; exec rm "$@"' rm "$@"; }}"""
    root = make_root(tmp_path / "root", {})
    with subprocess.Popen(
        (sys.executable, "-c", HEARING, "sh", "-s"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "GPUNODE_ROOT": str(root)},
    ) as one:
        answer, _ = one.communicate(f"{program}\n{probe_script()}".encode(), timeout=WAIT_S)
    assert answer.endswith(b"\n@end\n")
    assert left(one.pid) == []


def test_a_reader_that_is_gone_leaves_nothing(tmp_path: Path) -> None:
    with probing(tmp_path) as (running, answer):
        assert running.stdout is not None
        running.stdout.close()
        answer.touch()
        assert until(lambda: running.poll() is not None)
        assert left(running.pid) == []


@needs_root
@pytest.mark.skipif(not Path("/run").is_dir(), reason="there is no /run")
def test_what_a_killed_probe_left_goes_with_the_next_one() -> None:
    old = Path("/run/.gpunode-probe.99999999")  # no pid is that large
    young = Path("/run/.gpunode-probe.99999998")
    try:
        for path in (old, young):
            path.mkdir(exist_ok=True)
        os.utime(old, (0, 0))
        assert probe_here().returncode == 0
        assert (old.exists(), young.exists()) == (False, True)
    finally:
        for path in (old, young):
            with suppress(FileNotFoundError):
                path.rmdir()
