"""Channels are opened ahead of the scripts that will need them: against a real sshd."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gpunode.transport.base import NotReached, Question, StillRunning
from gpunode.transport.sessions import Sessions
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_library import Asked, Transport, paramiko
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd
from tests.transport.sudo import stand_in

Start = Callable[..., Sshd]
MSG_CHANNEL_EOF, MSG_CHANNEL_SUCCESS = 96, 99  # RFC 4254


def opened(server: Sshd) -> int:
    return (server.directory / "log").read_text().count("ctype session")


def test_one_script_opens_one_channel_and_several_wait_for_the_second_alone(sshd: Start) -> None:
    server = sshd(extra="LogLevel DEBUG1")
    ssh = Ssh(target(server), options(server))
    for number, channels in ((1, 1), (2, 2), (3, 4), (4, 5)):
        assert ssh.run(f"echo {number}", timeout_s=120).stdout == b"%d\n" % number
        if number != 2:  # there the third is asked for, and may not have come yet
            assert opened(server) in (channels, channels + (number > 2))
    ssh.close()


def test_where_several_scripts_were_announced_none_waits_for_a_channel(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, asked = sshd(), list[object]()
    ssh = Ssh(target(server), options(server, several=True))
    monkeypatch.setattr(paramiko.Transport, "open_session", lambda *_, **__: asked.append(1))
    for number in range(4):
        assert ssh.run(f"echo {number}", timeout_s=120).stdout == b"%d\n" % number
    assert not asked
    ssh.close()


@pytest.mark.parametrize("several", [False, True])
def test_where_one_channel_is_granted_at_a_time_each_has_its_turn(sshd: Start, several: bool) -> None:
    server = sshd(extra="MaxSessions 1")
    ssh = Ssh(target(server), options(server, several=several))
    for number in range(6):
        assert ssh.run(f"echo {number}", timeout_s=120).stdout == b"%d\n" % number
    ssh.close()


def test_a_connection_that_ends_with_a_channel_in_store_is_dialled_again(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    for _ in range(3):
        ssh.run("true", timeout_s=120)
    ssh.reconnect()
    assert ssh.run("echo again", timeout_s=120).stdout == b"again\n"
    ssh.close()


def test_a_host_that_does_not_answer_a_command_ends_the_connection_in_time(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=120)
    transport = ssh._chain[-1]
    answers = Transport._channel_handler_table
    monkeypatch.setitem(answers, MSG_CHANNEL_SUCCESS, lambda channel, message: None)  # the answer is lost
    with pytest.raises(paramiko.SSHException, match="no answer to a command in 1 s"):
        Sessions(transport).started("sleep 5", 1, reads=False)
    assert not transport.is_active()
    ssh.close()


def test_a_host_that_does_not_answer_what_came_with_the_login_is_not_asked_twice(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    monkeypatch.setattr("gpunode.transport.ssh._REPLY_S", 5.0)
    answers = Transport._channel_handler_table
    monkeypatch.setitem(answers, MSG_CHANNEL_SUCCESS, lambda channel, message: None)  # the answer is lost
    ssh = Ssh(target(server), options(server))
    with pytest.raises(NotReached, match="connection lost"):
        ssh.run(Question("sleep 30"), timeout_s=5)
    assert (server.directory / "log").read_text().count("Accepted publickey") == 1
    ssh.close()


def test_an_end_of_input_that_comes_after_the_channels_end_is_not_sent(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What paramiko's thread answers while ours is about to send: sshd took the late one for an attack."""
    sent, late = Transport._send_user_message, list[int]()

    def slowly(self: Transport, data: paramiko.Message) -> None:
        if data.asbytes()[0] == MSG_CHANNEL_EOF and threading.current_thread() is threading.main_thread():
            late.append(1)
            until = time.monotonic() + 5
            while self._channels.values() and time.monotonic() < until:  # type: ignore[attr-defined]
                time.sleep(0.01)
        sent(self, data)

    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh._early = False
    monkeypatch.setattr(Transport, "_send_user_message", slowly)
    assert ssh.run("echo done", timeout_s=120).stdout == b"done\n"
    assert ssh.run("echo again", timeout_s=120).stdout == b"again\n"
    assert len(late) == 2
    assert (server.directory / "log").read_text().count("Accepted publickey") == 1
    assert "nonexistent" not in (server.directory / "log").read_text()
    ssh.close()


def nonsense(*_: object) -> None:
    raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")  # as paramiko does, where it decodes


def test_an_answer_that_paramiko_cannot_decode_is_a_lost_connection(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=120)
    answers = Transport._channel_handler_table
    monkeypatch.setitem(answers, MSG_CHANNEL_SUCCESS, nonsense)
    with pytest.raises(NotReached, match="connection lost"):
        ssh.run("true", timeout_s=120)
    ssh.close()


def test_a_key_exchange_that_paramiko_cannot_read_is_no_session(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sshd()
    monkeypatch.setattr("paramiko.kex_curve25519.KexCurve25519.parse_next", nonsense)
    monkeypatch.setattr("paramiko.Transport._preferred_kex", ("curve25519-sha256@libssh.org",))
    with pytest.raises(NotReached, match="no SSH session came about"):
        Ssh(target(server), options(server)).run("true", timeout_s=120)


def test_a_refusal_is_said(sshd: Start) -> None:
    server = sshd(extra="MaxSessions 0")
    ssh = Ssh(target(server), options(server))
    with pytest.raises(NotReached, match="refuses to run a command"):
        ssh.run("true", timeout_s=120)
    ssh.close()


READER = "gpunode-script:"  # in what waits on the host for a script


def readers(port: int) -> list[int]:
    """Processes of connections to this port that wait for a script, or run one that came on stdin."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words, environ = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
            if READER.encode() in words and f" {port}\0".encode() in environ:
                found.append(int(path.name))
    return found


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The channels that were ready for a script with data."""
    found: list[object] = []
    inner = Sessions._ready

    def ready(self: Sessions, line: str, limit_s: float) -> paramiko.Channel | None:
        channel = inner(self, line, limit_s)
        found.extend([channel] if channel is not None else [])
        return channel

    monkeypatch.setattr(Sessions, "_ready", ready)
    return found


def talk(ssh: Ssh, log: Path) -> None:
    """Looks, and scripts with and without data, as in a setup; each runs once."""
    log.unlink(missing_ok=True)
    for number, stdin in enumerate((b"", b"", b"some data", b"", b"x" * 200_000, b"more", b"\n", b"", b"", b"last")):
        script = f"echo {number} >>{log}; wc -c; cat; exit {number}"
        done = ssh.run(Question(script) if number == 0 else script, stdin=stdin, timeout_s=120)
        assert (done.code, done.stdout.strip()) == (number, b"%d" % len(stdin))
    assert log.read_text() == "".join(f"{number}\n" for number in range(10))


def test_what_has_data_on_its_stdin_finds_its_reader_ready(sshd: Start, tmp_path: Path, used: list[object]) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server, several=True))
    talk(ssh, tmp_path / "log")
    assert len(used) >= 3
    ssh.run("true", timeout_s=120)
    left = readers(server.port)
    ssh.close()
    until = time.monotonic() + 60
    while set(readers(server.port)) & set(left) and time.monotonic() < until:
        time.sleep(0.1)
    assert not set(readers(server.port)) & set(left), "nothing waits on the host any more"


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_reader_takes_no_scripts_place(sshd: Start, tmp_path: Path, most: int) -> None:
    server = sshd(extra=f"MaxSessions {most}")
    ssh = Ssh(target(server), options(server, several=True))
    talk(ssh, tmp_path / "log")
    ssh.close()


@pytest.mark.parametrize("most", [2, 3])
def test_beside_a_script_that_still_runs_there_is_room_for_what_ends_it(sshd: Start, tmp_path: Path, most: int) -> None:
    server = sshd(extra=f"MaxSessions {most}")
    ssh = Ssh(target(server), options(server, several=True))
    for _ in range(3):
        ssh.run("sleep 0.3", timeout_s=120)
    with pytest.raises(StillRunning):
        ssh.run(f"echo $$ >{tmp_path}/pid; sleep 60", timeout_s=1)
    assert ssh.run(f"kill -KILL $(cat {tmp_path}/pid); echo ended", timeout_s=120).stdout == b"ended\n"
    ssh.close()


def reader_of(ssh: Ssh) -> Asked:
    reader = ssh._sessions and ssh._sessions._reader
    assert reader
    return reader


def too_old(ssh: Ssh) -> None:
    reader_of(ssh).sent = (0.0, -1e6)


def closed(ssh: Ssh) -> None:
    if reader_of(ssh).line:  # it was started
        reader_of(ssh).channel.close()


def killed(ssh: Ssh) -> None:
    for process in readers(int(ssh.target.rpartition(":")[2])):
        os.kill(process, signal.SIGKILL)
    time.sleep(0.5)


@pytest.mark.parametrize("end", [too_old, closed, killed])
def test_a_reader_that_is_gone_is_done_without(
    sshd: Start, tmp_path: Path, used: list[object], end: Callable[[Ssh], None]
) -> None:
    server, log = sshd(), tmp_path / "log"
    ssh = Ssh(target(server), options(server, several=True))
    for number in range(5):
        ssh.run("true", timeout_s=120)
        time.sleep(0.2)
        end(ssh)
        assert ssh.run(f"cat >>{log}", stdin=b"%d\n" % number, timeout_s=120).code == 0
    assert log.read_text() == "0\n1\n2\n3\n4\n"
    assert not used
    ssh.close()


def test_with_sudo_none_is_started_in_advance(sshd: Start, tmp_path: Path, used: list[object]) -> None:
    programs = stand_in(tmp_path, "sudo")
    (tmp_path / "nopasswd").touch()
    server = sshd(force=f'PATH={programs}:$PATH; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    ssh = Ssh(target(server), options(server, become="always", several=True))
    for word in (b"one", b"two", b"three", b"four"):
        assert ssh.run("cat", stdin=word, timeout_s=120).stdout == word
    assert not used
    ssh.close()
