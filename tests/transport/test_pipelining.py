"""A login in one flight ends as one that waits for each answer does, whatever the server says. Against a real sshd."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpunode.errors import TransportError
from gpunode.transport import pipelining, ssh
from gpunode.transport.base import NotReached, Question
from gpunode.transport.identities import load, unlock
from gpunode.transport.login import LoginPassword
from gpunode.transport.secret import Secret
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_library import Asked, Transport, paramiko
from gpunode.transport.sudo_password import SudoPassword
from tests.transport.certify import certify, public
from tests.transport.conftest import can_have_passwords, options, target
from tests.transport.sshd import Sshd
from tests.transport.sudo import PASSWORD, stand_in

Start = Callable[..., Sshd]
Flags = dict[str, Any]


def outcome(server: Sshd, *, pipelined: bool, asks: bool = False, **flags: Any) -> tuple[str, str]:
    """(what came of two scripts, how the server let us in); flags as of `options`; `asks`: the first only reads."""
    seen = (server.directory / "log").stat().st_size
    host = Ssh(target(server), options(server, **flags))
    host._pipelining = pipelined
    first = Question("echo one") if asks else "echo one"
    try:
        said = "".join(host.run(one, timeout_s=120).stdout.decode() for one in (first, "echo two"))
    except TransportError as error:
        said = f"{type(error).__name__}: {error.problem}; {error.evidence}; {error.remedy.text}"
    finally:
        host.close()
    lines = (server.directory / "log").read_bytes()[seen:].decode().splitlines()
    accepted = [line.partition(" from ")[0] for line in lines if line.startswith("Accepted")]
    return said, " ".join(accepted)


def key_of(kind: str) -> Callable[[Sshd], Flags]:
    def arrange(server: Sshd) -> Flags:
        key = server.keygen(f"of-{kind}", "-t", kind, "-N", "")
        server.extra = f"AuthorizedKeysFile {key}.pub"
        return {"identities": (key,)}

    return arrange


def second_key(server: Sshd) -> Flags:
    return {"identities": (server.keygen("nobodys"), server.keygen("id"))}


def certificate(server: Sshd) -> Flags:
    certify(server.keygen("ca"), server.keygen("id"), names=getpass.getuser())
    server.extra = f"TrustedUserCAKeys {server.directory}/ca.pub\nAuthorizedKeysFile none"
    return {}


def passphrase(server: Sshd) -> Flags:
    key = server.keygen("locked", "-N", PASSWORD)
    assert unlock(key, Secret(PASSWORD))
    server.extra = f"AuthorizedKeysFile {key}.pub"
    return {"identities": (key,)}


def extra(line: str, **flags: object) -> Callable[[Sshd], Flags]:
    def arrange(server: Sshd) -> Flags:
        server.extra = line
        return flags

    return arrange


def too_many_keys(server: Sshd) -> Flags:
    server.extra = "MaxAuthTries 1\nAuthorizedKeysFile none"
    return {"identities": tuple(server.keygen(f"nobodys-{number}") for number in range(3))}


def changed_host_key(server: Sshd) -> Flags:
    return {"known": f"* {public(server.keygen('another'))}\n"}


def sudo_password(server: Sshd, *, tty: bool = False, word: str = PASSWORD) -> Flags:
    if tty:
        (server.directory / "requiretty").touch()
    path = f"{stand_in(server.directory, 'sudo')}:{os.environ['PATH']}"
    server.force = f'PATH={path}; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    return {"become": "always", "become_password": SudoPassword(Secret(word))}


KINDS: dict[str, Callable[[Sshd], Flags]] = {
    "key": lambda server: {},
    "second key after a refused one": second_key,
    "certificate": certificate,
    "RSA key": key_of("rsa"),
    "ECDSA key": key_of("ecdsa"),
    "passphrase": passphrase,
    "refused": extra("AuthorizedKeysFile none"),
    "no key at all": extra("", identities=()),
    "keys are not taken": extra("PubkeyAuthentication no"),
    "too many keys": too_many_keys,
    "a second proof is asked for": extra("AuthenticationMethods publickey,publickey"),
    "changed host key": changed_host_key,
    "MaxSessions 1": extra("MaxSessions 1"),
    "MaxSessions 0": extra("MaxSessions 0"),
    "sudo with a password": sudo_password,
    "sudo with another password": lambda server: sudo_password(server, word="another"),
    "sudo wants a terminal": lambda server: sudo_password(server, tty=True),
}
IN_ONE_FLIGHT = {"key", "ECDSA key", "passphrase", "MaxSessions 1", "sudo with a password", "sudo wants a terminal"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Transport]:
    """The connections whose first session was asked for with the login."""
    found: list[Transport] = []
    inner = pipelining.ask

    def ask(transport: Transport) -> object:
        if not transport.is_authenticated():
            found.append(transport)
        return inner(transport)

    monkeypatch.setattr(pipelining, "ask", ask)
    return found


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that were sent with a login."""
    found: list[str] = []
    inner = pipelining.start

    def start(transport: Transport, asked: Asked, line: str, number: int) -> None:
        assert not transport.is_authenticated()
        found.append(line)
        inner(transport, asked, line, number)

    monkeypatch.setattr(pipelining, "start", start)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_end_alike(
    need_sshd: None, tmp_path: Path, asked: list[Transport], started: list[str], kind: str
) -> None:
    server = Sshd(tmp_path)
    flags = KINDS[kind](server)
    server.start()
    try:
        waiting = outcome(server, pipelined=False, **flags)
        assert not asked
        assert outcome(server, pipelined=True, **flags) == waiting
        in_advance = len(asked)
        if kind == "sudo with another password":  # one that two refused is not tried any more
            flags["become_password"] = SudoPassword(Secret("another"))
        with_it = outcome(server, pipelined=True, asks=True, **flags)
    finally:
        server.stop()
    assert with_it[0] == waiting[0]
    if kind != "MaxSessions 0":  # there it is tried again without, and the host lets us in twice
        assert with_it[1] == waiting[1]
    assert ("one\ntwo\n" in waiting[0]) == bool(waiting[1]) or "sudo" in kind or kind == "MaxSessions 0"
    if kind in IN_ONE_FLIGHT:
        assert waiting[0] == "one\ntwo\n"
        assert in_advance == 1
        assert len(started) == (0 if "sudo" in kind else 1), "what goes on stdin waits for its turn"


def test_a_command_that_came_with_the_login_runs_once(sshd: Start, tmp_path: Path, started: list[str]) -> None:
    server, log = sshd(), tmp_path / "ran"
    for script, early in (
        (f"echo ran >>{log}; cat; exit 3", False),
        (Question(f"echo ran >>{log}; cat; exit 3"), True),
    ):
        host = Ssh(target(server), options(server, several=True))
        for code in (3, 3):
            assert host.run(script, timeout_s=120).code == code
        host.close()
        assert log.read_text() == "ran\n" * 2
        assert bool(started) is early, "what may change something is not sent before it is known that it arrives"
        log.unlink()


@pytest.mark.parametrize("first", [1, 7])
def test_a_server_that_counts_otherwise_is_asked_again(
    sshd: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, started: list[str], first: int
) -> None:
    """It ends the connection for a command in a session that there is none of, and has run nothing."""
    server, log = sshd(), tmp_path / "ran"
    monkeypatch.setattr(pipelining, "FIRST", first)
    host = Ssh(target(server), options(server))
    begin = time.monotonic()
    for word in ("one", "two"):
        assert host.run(Question(f"echo {word} | tee -a {log}"), timeout_s=120).stdout == f"{word}\n".encode()
    assert log.read_text() == "one\ntwo\n"
    assert len(started) == 1
    assert time.monotonic() - begin < 50, "no answer was waited for in vain"
    host.reconnect()
    assert host.run(Question("echo three"), timeout_s=120).stdout == b"three\n"
    assert len(started) == 1, "it is not tried again"
    host.close()


@pytest.mark.parametrize("script", ["exit 5", "kill -KILL $$", "printf x; exit 0", ":"])
def test_a_command_that_came_with_the_login_answers_as_any(sshd: Start, started: list[str], script: str) -> None:
    server = sshd()

    def answer(way: type[str]) -> tuple[object, ...]:
        host = Ssh(target(server), options(server))
        try:
            done = host.run(way(script), timeout_s=120)
        except TransportError as error:
            return (error.problem, error.evidence)
        finally:
            host.close()
        return (done.code, done.stdout, done.stderr)

    assert answer(Question) == answer(str)
    assert len(started) == 1


@pytest.mark.parametrize("how", ["PasswordAuthentication yes", "KbdInteractiveAuthentication yes\nUsePAM yes"])
@pytest.mark.parametrize("word", [PASSWORD, "another"])
def test_both_ways_end_alike_with_a_password(sshd: Start, how: str, word: str) -> None:
    if not can_have_passwords():
        pytest.skip("needs root, unshare and openssl")
    server = sshd(extra=f"{how}\nAuthorizedKeysFile none", password=PASSWORD)
    ends = [outcome(server, pipelined=way, password=LoginPassword(Secret(word))) for way in (False, True)]
    assert ends[0] == ends[1]
    assert (ends[0][0] == "one\ntwo\n") == (word == PASSWORD)


@contextmanager
def agent_with(key: Path) -> Iterator[str]:
    path = key.parent / "agent"
    process = subprocess.Popen(("ssh-agent", "-D", "-a", str(path)), stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.05)
        environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
        subprocess.run(("ssh-add", "-q", str(key)), check=True, capture_output=True, env=environment)
        yield str(path)
    finally:
        process.terminate()
        process.wait()


def test_both_ways_end_alike_with_an_agent(
    sshd: Start, monkeypatch: pytest.MonkeyPatch, asked: list[Transport]
) -> None:
    server = sshd()
    with agent_with(server.identity) as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        ends = [outcome(server, pipelined=way, identities=(), agent=True) for way in (False, True)]
    assert ends[0] == ends[1]
    assert ends[0][0] == "one\ntwo\n"
    assert len(asked) == 1


def test_both_ways_end_alike_through_a_jump_host(sshd: Start, asked: list[Transport]) -> None:
    jump, server = sshd(), sshd()
    (jump.directory / "id.pub").write_text((server.directory / "id.pub").read_text())
    known = "".join(f"[127.0.0.1]:{one.port} {one.host_key}\n" for one in (jump, server))
    ends = [outcome(server, pipelined=way, known=known, jump=str(target(jump))) for way in (False, True)]
    assert ends[0] == ends[1]
    assert ends[0][0] == "one\ntwo\n"
    assert len(asked) == 1  # of the host itself: on the jump host no session is wanted


def test_nothing_about_us_is_sent_before_the_host_key_is_known(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sshd(extra="LogLevel DEBUG2")
    said, _ = outcome(server, pipelined=True, **changed_host_key(server))
    assert "HostKeyRefused" in said
    assert "userauth-request" not in (server.directory / "log").read_text()
    outcome(server, pipelined=True)
    assert "userauth-request" in (server.directory / "log").read_text()


def test_a_server_that_ends_the_connection_for_it_is_asked_one_by_one(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    inner = pipelining.ask

    def ask(transport: Transport) -> object:
        if not transport.is_authenticated():
            transport.sock.shutdown(socket.SHUT_RDWR)  # as if the server had done so
            raise EOFError
        return inner(transport)

    monkeypatch.setattr(pipelining, "ask", ask)
    assert outcome(server, pipelined=True)[0] == "one\ntwo\n"


def test_a_server_that_gives_no_answer_is_given_up_in_time(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sshd()
    monkeypatch.setattr(ssh, "_REPLY_S", 3.0)
    monkeypatch.setattr(paramiko.auth_handler.AuthHandler, "_parse_userauth_success", lambda handler, message: None)
    ends = [outcome(server, pipelined=way) for way in (False, True)]
    assert ends[0] == ends[1]
    assert "refuses the login" in ends[0][0]


def test_a_login_that_is_given_up_by_another_thread_ends_at_once(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sshd()
    waits = threading.Event()
    monkeypatch.setattr(
        paramiko.auth_handler.AuthHandler, "_parse_userauth_success", lambda handler, message: waits.set()
    )
    host = Ssh(target(server), options(server))

    def close() -> None:
        waits.wait(120)
        host.close()

    closer = threading.Thread(target=close)
    closer.start()
    begin = time.monotonic()
    with pytest.raises(NotReached):
        host.run("true", timeout_s=120)
    closer.join()
    assert time.monotonic() - begin < 50  # the answer itself may take 60


def test_another_paramiko_waits_for_each_answer(
    sshd: Start, monkeypatch: pytest.MonkeyPatch, asked: list[Transport]
) -> None:
    server = sshd()
    monkeypatch.setattr(pipelining, "_VALUES", (*pipelining._VALUES, "a name of another version"))
    assert outcome(server, pipelined=True)[0] == "one\ntwo\n"
    assert not asked


def test_only_openssh_is_asked_early(need_sshd: None, tmp_path: Path) -> None:
    key = load(Sshd(tmp_path).keygen("id"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = Transport(ours)
        for version, early in (("OpenSSH_9.9", True), ("OpenSSH_for_Windows_9.5", True), ("dropbear_2022.83", False)):
            transport.remote_version = f"SSH-2.0-{version}"
            assert pipelining.fits(transport, key) == early
