"""Channels are opened ahead of the scripts that will need them: against a real sshd."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpunode.transport.base import NotReached
from gpunode.transport.sessions import Sessions
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_library import paramiko
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd

Start = Callable[..., Sshd]
MSG_CHANNEL_SUCCESS = 99  # RFC 4254


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
    answers = paramiko.Transport._channel_handler_table  # type: ignore[attr-defined]
    monkeypatch.setitem(answers, MSG_CHANNEL_SUCCESS, lambda channel, message: None)  # the answer is lost
    with pytest.raises(paramiko.SSHException, match="no answer to a command in 1 s"):
        Sessions(transport).started("sleep 5", 1, reads=False)
    assert not transport.is_active()
    ssh.close()


def nonsense(*_: object) -> None:
    raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")  # as paramiko does, where it decodes


def test_an_answer_that_paramiko_cannot_decode_is_a_lost_connection(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=120)
    answers = paramiko.Transport._channel_handler_table  # type: ignore[attr-defined]
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
