"""Who we are to a host: certificates, keys with a passphrase, an agent, a password. Against a real sshd."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.identities import load, locked, unlock
from gpunode.transport.login import LoginPassword, Questions
from gpunode.transport.secret import Secret
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshOptions, SshTarget, resolve
from gpunode.transport.ssh_library import paramiko
from tests.transport.certify import certify, public
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd

Start = Callable[..., Sshd]
PASSWORD = "open sesame"


def answered(server: Sshd, **flags: object) -> str:
    """How the server let us in, in its own words; or why it did not."""
    ssh = Ssh(target(server), options(server, **flags))  # type: ignore[arg-type]
    try:
        assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    except TransportError as error:
        return f"{error.problem}; {error.evidence}; {error.remedy.text}"
    finally:
        ssh.close()
    lines = (server.directory / "log").read_text().splitlines()
    return next(line for line in reversed(lines) if line.startswith("Accepted"))


@pytest.fixture
def trusting(sshd: Start, tmp_path: Path) -> tuple[Sshd, Path]:
    """A server that trusts the certificates of an authority, and no key; and the authority."""
    ca = Sshd(tmp_path).keygen("user-ca")
    server = sshd(extra=f"TrustedUserCAKeys {ca}.pub\nAuthorizedKeysFile none")
    return server, ca


@pytest.mark.parametrize("kind", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa",)], ids=["ed25519", "rsa", "ecdsa"])
def test_a_certificate_next_to_the_key_logs_in(trusting: tuple[Sshd, Path], kind: tuple[str, ...]) -> None:
    server, ca = trusting
    key = server.keygen("mine", "-t", *kind, "-N", "")
    certify(ca, key, names=target(server).user or "")
    assert "CERT" in answered(server, identities=(key,))


def test_a_certificate_file_of_the_config_logs_in(trusting: tuple[Sshd, Path]) -> None:
    server, ca = trusting
    path = certify(ca, server.identity, names=target(server).user or "").rename(server.directory / "elsewhere")
    config = server.directory / "config"
    config.write_text(f"CertificateFile {path}\n")
    assert "CERT" in answered(server, config=(config,))


def test_the_plain_key_is_tried_after_a_certificate_that_is_refused(sshd: Start) -> None:
    server = sshd()
    certify(server.keygen("nobodys"), server.identity, names="nobody")
    assert "ED25519 SHA256" in answered(server)
    assert "CERT" not in answered(server)


def test_a_refused_certificate_says_when_it_expired(trusting: tuple[Sshd, Path]) -> None:
    server, ca = trusting
    certify(ca, server.identity, "-V", "-3d:-2d", names=target(server).user or "")
    said = answered(server)
    assert f"tried {server.identity}-cert.pub (expired on 20" in said
    assert f", {server.identity};" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ssh-ed25519-cert-v01@openssh.com AAAA", "is no certificate to log in with"),
        ("", "there is no certificate in it"),
        ("\0" * 1000, "is no certificate to log in with"),
    ],
    ids=["cut off", "empty", "zeros"],
)
def test_a_certificate_that_cannot_be_read_costs_the_key_nothing(sshd: Start, text: str, why: str) -> None:
    server = sshd()
    path = server.directory / "id-cert.pub"
    path.write_text(text)
    assert "ED25519 SHA256" in answered(server)
    (server.directory / "id.pub").write_text("# nobody\n")
    assert why in answered(server)


def test_a_certificate_about_another_key_is_not_tried(sshd: Start) -> None:
    server = sshd()
    other = server.keygen("other")
    certify(server.keygen("ca"), other).rename(server.directory / "id-cert.pub")
    (server.directory / "id.pub").write_text("# nobody\n")
    assert "is about a key that is not at hand" in answered(server)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """An agent of the test's own; agent(KEY) gives it a key, and its certificate where there is one."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(("ssh-agent", "-D", "-a", str(socket)), stdout=subprocess.DEVNULL)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))

    def add(key: Path) -> None:
        for _ in range(200):
            if socket.exists():
                break
            time.sleep(0.05)
        subprocess.run(("ssh-add", "-q", str(key)), check=True, capture_output=True)

    yield add
    process.terminate()
    process.wait()


@pytest.mark.parametrize("kind", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa",)], ids=["ed25519", "rsa", "ecdsa"])
def test_a_certificate_in_the_agent_logs_in(
    trusting: tuple[Sshd, Path], agent: Callable[[Path], None], kind: tuple[str, ...]
) -> None:
    server, ca = trusting
    key = server.keygen("mine", "-t", *kind, "-N", "")
    certify(ca, key, names=target(server).user or "")
    agent(key)
    for path in server.directory.glob("mine*"):
        path.unlink()
    assert "CERT" in answered(server, identities=(), agent=True)


def test_the_agent_signs_for_a_certificate_in_a_file(
    trusting: tuple[Sshd, Path], agent: Callable[[Path], None]
) -> None:
    server, ca = trusting
    key = server.keygen("mine")
    agent(key)
    certify(ca, key, names=target(server).user or "")
    shutil.copy(server.keygen("locked", "-N", "phrase"), key)  # what the file has cannot be opened
    assert "CERT" in answered(server, identities=(key,), agent=True)


def test_the_public_half_names_a_key_of_the_agent(sshd: Start, agent: Callable[[Path], None]) -> None:
    server = sshd()
    key = server.keygen("mine")
    (server.directory / "id.pub").write_text(public(key))
    config = server.directory / "config"
    config.write_text(f"IdentityFile {key}.pub\nIdentitiesOnly yes\n")
    assert "the public half of a key that the agent does not hold" in answered(
        server, identities=(), config=(config,), agent=True
    )
    agent(key)
    key.unlink()
    assert "Accepted publickey" in answered(server, identities=(), config=(config,), agent=True)


@pytest.mark.parametrize("word", ["{}", "$OTHER_AGENT", "${{OTHER_AGENT}}"])
def test_the_config_names_another_agent(
    sshd: Start, agent: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    server = sshd()
    key = server.keygen("mine")
    (server.directory / "id.pub").write_text(public(key))
    agent(key)
    key.unlink()
    socket = os.environ["SSH_AUTH_SOCK"]
    monkeypatch.delenv("SSH_AUTH_SOCK")
    monkeypatch.setenv("OTHER_AGENT", socket)
    config = server.directory / "config"
    config.write_text(f"IdentityAgent {word.format(socket)}\n")
    assert "Accepted publickey" in answered(server, identities=(), config=(config,), agent=True)
    assert "tried no key" in answered(server, identities=(), config=(), agent=True)


@pytest.mark.parametrize("kind", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa",), ("rsa", "-m", "PEM")])
def test_a_passphrase_opens_a_key_for_all_hosts(sshd: Start, kind: tuple[str, ...]) -> None:
    server = sshd()
    key = server.keygen("locked", "-t", *kind, "-N", "a phrase")
    (server.directory / "id.pub").write_text(public(key))
    assert "has a passphrase" in answered(server, identities=(key,))
    assert not unlock(key, Secret("another"))
    assert unlock(key, Secret("a phrase"))
    assert "Accepted publickey" in answered(server, identities=(key,))


def test_what_needs_a_passphrase_is_known_before_a_host_is_asked(tmp_path: Path, agent: Callable[[Path], None]) -> None:
    server = Sshd(tmp_path)
    plain, closed = server.keygen("plain"), server.keygen("closed", "-N", "phrase")
    held = server.keygen("held")
    agent(held)
    shutil.copy(closed, held)
    (tmp_path / "held.pub").unlink()

    def asked(*files: Path, agent: bool = False) -> tuple[tuple[Path, ...], bool]:
        flags = SshOptions(identities=files, agent=agent, config=(), home=tmp_path)
        return locked(resolve(SshTarget("h"), flags, lambda _: {"identitiesonly": "yes"}))

    assert asked(closed) == ((closed,), False)
    assert asked(plain, closed) == ((closed,), True)
    assert asked(tmp_path / "absent") == ((), False)
    assert asked(held) == ((held,), False)  # its file is another key's now
    os.replace(closed, tmp_path / "moved")
    load.cache_clear()


def test_a_password_logs_in_where_no_key_does(need_namespaces: None, sshd: Start) -> None:
    server = sshd(extra="PasswordAuthentication yes\nAuthorizedKeysFile none", password=PASSWORD)
    assert "takes only" in answered(server, identities=()) or "accepted none" in answered(server, identities=())
    assert "Accepted password" in answered(server, password=LoginPassword(Secret(PASSWORD)))
    assert "Accepted password" in answered(server, identities=(), password=LoginPassword(Secret(PASSWORD)))


def test_a_password_is_the_answer_to_one_question(need_namespaces: None, sshd: Start) -> None:
    server = sshd(extra="KbdInteractiveAuthentication yes\nUsePAM yes\nAuthorizedKeysFile none", password=PASSWORD)
    assert "Accepted keyboard-interactive" in answered(server, password=LoginPassword(Secret(PASSWORD)))


def test_a_password_is_the_second_proof(need_namespaces: None, sshd: Start) -> None:
    server = sshd(extra="PasswordAuthentication yes\nAuthenticationMethods publickey,password", password=PASSWORD)
    assert "asks for a second proof as well (password)" in answered(server)
    assert "Accepted password" in answered(server, password=LoginPassword(Secret(PASSWORD)))


@pytest.mark.parametrize("how", ["PasswordAuthentication yes", "KbdInteractiveAuthentication yes\nUsePAM yes"])
def test_a_wrong_password_is_tried_once_and_not_shown(need_namespaces: None, sshd: Start, how: str) -> None:
    server = sshd(extra=f"{how}\nAuthorizedKeysFile none", password=PASSWORD)
    said = answered(server, identities=(), password=LoginPassword(Secret("open barley")))
    assert "the server refused the password, which was tried once" in said
    assert "barley" not in said
    log = (server.directory / "log").read_text()
    assert log.count("Failed password") + log.count("PAM: Authentication failure") == 1, log


def test_a_server_that_takes_no_password_is_sent_none(sshd: Start) -> None:
    server = sshd(extra="AuthorizedKeysFile none")
    said = answered(server, password=LoginPassword(Secret(PASSWORD)))
    assert "takes only publickey, and no password" in said
    assert "Failed password" not in (server.directory / "log").read_text()


def test_a_key_that_is_accepted_needs_no_password(need_namespaces: None, sshd: Start) -> None:
    server = sshd(extra="PasswordAuthentication yes", password=PASSWORD)
    assert "Accepted publickey" in answered(server, password=LoginPassword(Secret("not this")))


def test_a_jump_host_is_given_no_password(need_namespaces: None, sshd: Start) -> None:
    bastion = sshd(extra="PasswordAuthentication yes\nAuthorizedKeysFile none", password=PASSWORD)
    inner = sshd()
    known = "".join(f"[127.0.0.1]:{s.port} {s.host_key}\n" for s in (bastion, inner))
    flags = options(inner, known, jump=f"127.0.0.1:{bastion.port}", password=LoginPassword(Secret(PASSWORD)))
    with pytest.raises(TransportError, match="refuses the login"):
        Ssh(target(inner), flags).run("true", timeout_s=120)
    assert "password" not in (bastion.directory / "log").read_text()


def test_two_refusals_end_a_password_for_the_whole_fleet() -> None:
    """Fifty wrong ones would lock an account of a directory."""
    tries: list[str] = []

    def refuse(secret: Secret) -> str:
        tries.append(secret.reveal())
        raise paramiko.AuthenticationException

    password, said = LoginPassword(Secret("wrong")), []
    threads = [threading.Thread(target=lambda: said.append(password.offer(refuse))) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tries == ["wrong", "wrong"]
    assert sum("was not tried" in why for why in said) == 48


WRONG = "the server refused the password, which was tried once"


def test_a_password_that_a_host_took_ends_when_two_in_a_row_refuse_it() -> None:
    password = LoginPassword(Secret("right"))

    def refuse(_: Secret) -> str:
        raise paramiko.AuthenticationException

    assert [password.offer(way) for way in (lambda _: "", refuse, lambda _: "", refuse)] == ["", WRONG, "", WRONG]
    assert password.offer(refuse) == WRONG
    assert "was not tried" in password.offer(refuse)
    assert "was not tried" in password.offer(lambda _: "")


def test_fifty_refusals_at_once_after_one_host_took_it_are_two() -> None:
    password, tries = LoginPassword(Secret("right")), list[int]()
    assert password.offer(lambda _: "") == ""
    both = threading.Barrier(2)

    def refuse(_: Secret) -> str:
        tries.append(1)
        both.wait(60)
        raise paramiko.AuthenticationException

    threads = [threading.Thread(target=password.offer, args=(refuse,)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tries) == 2


def test_a_refusal_that_names_other_methods_is_counted_and_silence_is_not() -> None:
    password = LoginPassword(Secret("wrong"))

    def says(error: Exception) -> str:
        def attempt(_: Secret) -> str:
            raise error

        return password.offer(attempt)

    assert says(paramiko.BadAuthenticationType("no", ["publickey"])) == WRONG
    for error in (paramiko.AuthenticationException("Authentication timeout."), EOFError(), paramiko.SSHException()):
        with pytest.raises(type(error)):
            says(error)
    assert says(paramiko.BadAuthenticationType("no", ["publickey"])) == WRONG
    assert "was not tried" in says(EOFError())


@pytest.mark.parametrize(
    "rounds",
    [[[("Password: ", False)], [("Verification code: ", False)]], [[("Password: ", False), ("Code: ", False)]],
     [[("Press enter ", True)]]],
    ids=["a second question", "two at once", "one with echo"],
)  # fmt: skip
def test_questions_that_a_password_does_not_answer_are_not_answered(rounds: list[list[tuple[str, bool]]]) -> None:
    questions = Questions(Secret(PASSWORD))
    assert questions.answer("", "", []) == []
    *first, last = rounds
    for prompts in first:
        assert questions.answer("", "", prompts) == [PASSWORD]
    with pytest.raises(paramiko.SSHException):
        questions.answer("", "", last)
    assert repr(rounds[-1][0][0]) in questions.unanswered
