"""A healthy host answers, however the link stalls and however busy the controller is; half an answer is none.

GPUNODE_FLEET_HOSTS and GPUNODE_FLEET_ROUNDS make the fleet larger (200 and 3 are run by hand), and
GPUNODE_FLEET_PROBE=1 lets each host run the whole probe instead of handing back a recorded answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import ExitCode, TransportError
from gpunode.facts.probe_script import probe_script
from gpunode.facts.wire import decode
from gpunode.fleet.run import run_fleet
from gpunode.model.report import HostOutcome
from gpunode.transport.base import StillRunning
from gpunode.transport.channel import converse
from gpunode.transport.feed import StdinScript
from gpunode.transport.shell import deliver
from gpunode.transport.ssh import Ssh
from tests.hostile.link import link
from tests.transport.conftest import need_sshd as need_sshd
from tests.transport.conftest import options, target
from tests.transport.conftest import sshd as sshd
from tests.transport.sshd import Sshd

HOSTS = int(os.environ.get("GPUNODE_FLEET_HOSTS", "12"))
ROUNDS = int(os.environ.get("GPUNODE_FLEET_ROUNDS", "1"))
WHOLE_PROBE = os.environ.get("GPUNODE_FLEET_PROBE") == "1"
RECORDED = (Path(__file__).parents[2] / "examples/hosts/debian12-ready/facts.txt").read_bytes()
LIMIT_S = 600.0  # nothing here is about speed
MANY = "MaxStartups 1000:100:1000\nMaxSessions 1000\nLoginGraceTime 600"

Start = Callable[..., Sshd]


def far(server: Sshd, port: int) -> Callable[[], Ssh]:
    """Makes connections to the server over the link at `port`; known_hosts is written once, before the first."""
    flags = options(server, f"[127.0.0.1]:{port} {server.host_key}\n")
    return lambda: Ssh(replace(target(server), port=port), flags)


def answers(ssh: Ssh) -> bool:
    """Whether the host's answer came back as it was sent."""
    if WHOLE_PROBE:
        return "identity" in decode(ssh.run(probe_script(), timeout_s=LIMIT_S).stdout).commands
    done = ssh.run("cat; echo said >&2; exit 3", stdin=RECORDED, timeout_s=LIMIT_S)
    return (done.code, done.stdout) == (3, RECORDED)


def test_every_host_answers_over_a_link_that_stalls(sshd: Start) -> None:
    server = sshd(extra=MANY)
    with link(server.port, "--stall", "0.8", "--every", "1.3") as port:
        connect = far(server, port)

        def work(number: int) -> HostOutcome:
            ssh = connect()
            try:
                assert answers(ssh)
            finally:
                ssh.close()
            return HostOutcome(str(number), ExitCode.DONE)

        for _ in range(ROUNDS):
            report = run_fleet(range(HOSTS), work, on_done=lambda outcome: None)
            assert [(h.target, h.problem + h.evidence) for h in report.hosts] == [(str(n), "") for n in range(HOSTS)]


STARVED = """
import os, sys
from tests.hostile.test_stalled_link import *
server = Sshd(Path(sys.argv[1]), port=int(sys.argv[2]))
flags = options(server)
hosts = [Ssh(target(server), flags) for _ in range(HOSTS)]
for ssh in hosts:
    ssh.run("true", timeout_s=LIMIT_S)
for thread in os.listdir("/proc/self/task"):
    os.setpriority(os.PRIO_PROCESS, int(thread), 19)
busy = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(4)]
for one in busy:
    os.setpriority(os.PRIO_PROCESS, one.pid, 0)
try:
    def work(ssh):
        return HostOutcome(str(all(answers(ssh) for _ in range(ROUNDS))), ExitCode.DONE)
    right = run_fleet(hosts, work, on_done=lambda outcome: None)
finally:
    for one in busy:
        one.kill()
        one.wait()
print([(h.target, h.problem) for h in right.hosts if h.target != "True"])
"""


def test_every_host_answers_a_starved_controller(sshd: Start) -> None:
    """The client gets what four busy loops leave to a process of the lowest priority."""
    server = sshd(extra=MANY)
    command = (sys.executable, "-c", STARVED, str(server.directory), str(server.port))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize(
    "limit", ["banner_timeout", "handshake_timeout", "auth_timeout", "clear_to_send_timeout", "channel_timeout"]
)
def test_no_limit_of_the_library_is_below_a_minute(sshd: Start, limit: str) -> None:
    """They count what the controller itself waits for a processor; its own for the first key exchange is 15 s."""
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=LIMIT_S)
    assert getattr(ssh._chain[-1], limit) >= 60
    ssh.close()


class Overtaken:
    """A channel whose exit status came before the output: that is still on its way for a good second."""

    eof_received = False
    closed = False
    status_event = threading.Event()

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.errors = [BEGIN + END]
        self.ready = time.monotonic()
        self.pipe = os.pipe()

    def fileno(self) -> int:
        return self.pipe[0]

    def recv_ready(self) -> bool:
        return bool(self.pieces) and time.monotonic() >= self.ready

    def recv(self, nbytes: int) -> bytes:
        self.ready = time.monotonic() + 1.2
        return self.pieces.pop(0)

    def recv_stderr_ready(self) -> bool:
        return bool(self.errors)

    def recv_stderr(self, nbytes: int) -> bytes:
        return self.errors.pop()

    def send(self, s: bytes) -> int:
        return len(s)

    def shutdown_write(self) -> None: ...

    def settimeout(self, timeout: float | None) -> None: ...

    def exit_status_ready(self) -> bool:
        return True

    def recv_exit_status(self) -> int:
        return 0


TOKEN = b"0123456789abcdef0123456789abcdef"
BEGIN, END = b"\x1egpunode-begin " + TOKEN + b"\n", b"\x1egpunode-end " + TOKEN + b" 7\n"


@pytest.mark.parametrize(
    "pieces",
    [[BEGIN + b"one", b"two" + END], [BEGIN + b"onetwo" + END[:9], END[9:]], [BEGIN[:5], BEGIN[5:] + b"onetwo" + END]],
    ids=["in the middle", "within the end mark", "within the begin mark"],
)
def test_an_exit_status_that_overtakes_the_output_ends_nothing(pieces: list[bytes]) -> None:
    channel = Overtaken(pieces)
    heard = converse(channel, StdinScript(deliver("true", b"")), LIMIT_S, lambda stderr: None)
    os.close(channel.pipe[0])
    os.close(channel.pipe[1])
    assert (heard.answer.stdout.code, bytes(heard.answer.stdout.body)) == (7, b"onetwo")


WHOLE = b"".join(b"line %d of an answer that is whole or none\n" % n for n in range(6000))
CUTS = (20_000, 100_000, 200_000, *range(len(WHOLE) - 4_000, len(WHOLE) + 8_000, 2_000), 1_000_000)


@pytest.mark.parametrize("cut", CUTS)
def test_an_answer_that_is_cut_is_no_result(sshd: Start, cut: int) -> None:
    """The last cuts lie in the end mark, and behind it: there the answer may be whole."""
    server = sshd()
    with link(server.port, "--cut", str(cut)) as port:
        ssh = far(server, port)()
        done = None
        with suppress(TransportError):
            done = ssh.run("cat", stdin=WHOLE, timeout_s=LIMIT_S)
        ssh.close()
    if done is None:
        assert cut < CUTS[-1]
    else:
        assert cut > len(WHOLE)
        assert (done.code, done.stdout) == (0, WHOLE)


@contextmanager
def when_it_exists(path: Path, act: Callable[[], object]) -> Iterator[None]:
    """`act` as soon as the script has made `path`."""

    def watch() -> None:
        while not path.exists() and not over.wait(0.02):
            pass
        act()

    over = threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_server_that_is_killed_in_the_middle_leaves_no_result(sshd: Start, tmp_path: Path) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    script = f"echo half; : >{tmp_path}/mark; sleep 120; echo whole"
    with when_it_exists(tmp_path / "mark", server.cut), pytest.raises(TransportError, match="connection lost"):
        ssh.run(script, timeout_s=LIMIT_S)
    ssh.close()


def test_a_shell_that_is_killed_on_the_host_leaves_no_result(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    with pytest.raises(TransportError, match="ended before its answer was complete"):
        ssh.run("echo half; kill -9 $$", timeout_s=LIMIT_S)
    with pytest.raises(StillRunning):  # a child holds the pipe: for all we know the rest is on its way
        ssh.run("sleep 90 & echo half; kill -9 $$", timeout_s=15)
    assert ssh.run("echo next", timeout_s=LIMIT_S).stdout == b"next\n"
    ssh.close()
