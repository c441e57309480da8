"""Logins that must fail, connections that end, and login shells that get in the way: against a real sshd."""

from __future__ import annotations

import gc
import getpass
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.base import HostKeyRefused, NotReached, PasswordRefused
from gpunode.transport.secret import Secret
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshTarget
from gpunode.transport.ssh_library import Transport, paramiko
from gpunode.transport.ssh_socket import Proxy
from gpunode.transport.sudo_password import SudoPassword
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd
from tests.transport.sudo import DIALECTS, PASSWORD, doas, neither, stand_in

Start = Callable[..., Sshd]
ECHO = "echo $((6*7)); cat"


def refused(ssh: Ssh, timeout_s: float = 120) -> TransportError:
    with pytest.raises(TransportError) as caught:
        ssh.run("echo reached", timeout_s=timeout_s)
    ssh.close()
    return caught.value


def fingerprint(public: Path) -> str:
    shown = subprocess.run(("ssh-keygen", "-lf", str(public)), capture_output=True, text=True, check=True)
    return shown.stdout.split()[1]


def test_an_unknown_key_is_refused_with_its_fingerprint_and_the_way_to_accept_it(sshd: Start) -> None:
    server = sshd()
    error = refused(Ssh(target(server), options(server, known="")))
    assert error.check == "fleet.hostkey"
    assert error.problem == f"{target(server)}: the host key is not known"
    assert fingerprint(server.directory / "host.pub") in error.evidence
    assert "--host-key accept-new" in error.remedy.text
    assert (server.directory / "known_hosts").read_text() == ""


@pytest.mark.parametrize("accept_new", [False, True], ids=["strict refuses it", "accept-new refuses it too"])
def test_a_changed_key(sshd: Start, accept_new: bool) -> None:
    server = sshd()
    other = server.keygen("other").with_suffix(".pub")
    known = f"# mine\n[127.0.0.1]:{server.port} {other.read_text()}"
    error = refused(Ssh(target(server), options(server, known, accept_new=accept_new)))
    assert "has changed" in error.problem
    assert error.check == "fleet.hostkey"
    assert fingerprint(server.directory / "host.pub") in error.evidence
    assert fingerprint(other) in error.evidence
    assert "known_hosts:2" in error.evidence
    assert "accept-new" not in error.remedy.text
    assert (server.directory / "known_hosts").read_text() == known


def test_a_revoked_key_is_refused_though_it_is_known(sshd: Start) -> None:
    server = sshd()
    name = f"[127.0.0.1]:{server.port}"
    error = refused(
        Ssh(
            target(server),
            options(server, f"{name} {server.host_key}\n@revoked * {server.host_key}\n", accept_new=True),
        )
    )
    assert "revoked" in error.problem
    assert error.check == "fleet.hostkey"


def test_an_answer_says_how_it_came(sshd: Start) -> None:
    server, begin = sshd(), time.time()
    ssh = Ssh(target(server), options(server))
    way = ssh.run("sleep 1; echo reached", timeout_s=120).way
    again = ssh.run("echo reached", timeout_s=120).way
    ssh.close()
    assert way is not None
    assert again is not None
    assert (way.user, way.becomes, way.may_ask) == (getpass.getuser(), False, False)
    assert way.host_key == f"{server.host_key.split()[0]} {fingerprint(server.directory / 'host.pub')}"
    assert way.known_in == f"{server.directory / 'known_hosts'}:1"
    assert begin <= way.sent_at <= way.answered_at - 1
    assert (again.host_key, again.known_in) == (way.host_key, way.known_in)
    assert again.sent_at >= way.answered_at - 0.1


def test_a_key_that_was_accepted_says_so(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server, known="", accept_new=True))
    way = ssh.run("echo reached", timeout_s=120).way
    ssh.close()
    assert way is not None
    assert way.known_in == f"{server.directory / 'known_hosts'}, added by this run"


def test_hashed_known_hosts_are_read(sshd: Start) -> None:
    server = sshd()
    flags = options(server)
    subprocess.run(
        ("ssh-keygen", "-q", "-H", "-f", str(server.directory / "known_hosts")), check=True, capture_output=True
    )
    assert "127.0.0.1" not in (server.directory / "known_hosts").read_text()
    ssh = Ssh(target(server), flags)
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()


def test_accept_new_remembers_the_key(sshd: Start) -> None:
    server = sshd()
    first = Ssh(target(server), options(server, known="# no newline at the end", accept_new=True))
    assert first.run("echo in", timeout_s=120).stdout == b"in\n"
    first.close()
    text = (server.directory / "known_hosts").read_text()
    assert text == f"# no newline at the end\n[127.0.0.1]:{server.port} {server.host_key}\n"
    second = Ssh(target(server), options(server, known=text))
    assert second.run("echo in", timeout_s=120).stdout == b"in\n"
    second.close()


def test_accept_new_with_nowhere_to_keep_keys(sshd: Start) -> None:
    server = sshd()
    flags = replace(options(server, known=""), accept_new=True, known_hosts=(Path("/dev/null"),))
    ssh = Ssh(target(server), flags)
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()
    nowhere = Ssh(target(server), replace(flags, known_hosts=(Path("/dev/null/known_hosts"),)))
    with pytest.raises(TransportError, match="cannot be added to /dev/null/known_hosts"):
        nowhere.run("echo in", timeout_s=120)
    nowhere.close()


def test_a_key_that_is_known_without_the_port_counts_as_for_ssh(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server, known=f"127.0.0.1 {server.host_key}\n"))
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()
    other = " ".join(server.keygen("other").with_suffix(".pub").read_text().split()[:2])
    ssh = Ssh(target(server), options(server, known=f"127.0.0.1 {other}\n"))
    with pytest.raises(HostKeyRefused, match="is not known"):
        ssh.run("echo in", timeout_s=120)
    ssh.close()


def test_a_known_key_of_another_type_is_asked_for_first(sshd: Start) -> None:
    """sshd shows ed25519 unless the client prefers another; only its RSA key is known here."""
    server = sshd()
    rsa = server.keygen("rsa", "-t", "rsa", "-b", "2048", "-N", "")
    server.stop()
    server.extra = f"HostKey {rsa}"
    server.start()
    public = " ".join(rsa.with_suffix(".pub").read_text().split()[:2])
    ssh = Ssh(target(server), options(server, known=f"[127.0.0.1]:{server.port} {public}\n"))
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()


def test_a_refused_login_lists_what_was_tried(sshd: Start) -> None:
    server = sshd()
    wrong = server.keygen("wrong")
    locked = server.keygen("locked", "-N", "secret phrase")
    error = refused(Ssh(target(server), options(server, identities=(wrong, locked, server.directory / "absent"))))
    assert "refuses the login" in error.problem
    assert f"tried {wrong}" in error.evidence
    assert f"{locked} has a passphrase" in error.evidence
    assert "absent does not exist" in error.evidence


def test_a_host_that_wants_passwords_says_so(sshd: Start) -> None:
    server = sshd(extra="PubkeyAuthentication no\nPasswordAuthentication yes")
    error = refused(Ssh(target(server), options(server)))
    assert "takes only password" in error.evidence


@pytest.mark.parametrize("kind", [("rsa", "-b", "2048"), ("ecdsa",)], ids=["rsa", "ecdsa"])
def test_keys_of_every_kind_log_in(sshd: Start, kind: tuple[str, ...]) -> None:
    server = sshd()
    key = server.keygen("kind", "-t", *kind, "-N", "")
    (server.directory / "id.pub").write_bytes(key.with_suffix(".pub").read_bytes())
    ssh = Ssh(target(server), options(server, identities=(key,)))
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("127.0.0.1", "refuses connections"),
        ("no-such-host.invalid", "does not resolve"),
        ("gpu01..example.org", "does not resolve"),
        ("a" * 64, "does not resolve"),
    ],
    ids=["nobody listens", "no such name", "a part without a letter", "a part that is too long"],
)
def test_unreachable_hosts_are_named_with_their_port(tmp_path: Path, host: str, said: str) -> None:
    server = Sshd(tmp_path, port=1)
    error = refused(Ssh(SshTarget(host, "root", 1), options(server, known="", connect_timeout_s=3)))
    assert f"{host}:1" in error.problem
    assert said in error.problem
    assert error.remedy.text


def test_a_port_that_is_not_ssh(tmp_path: Path) -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        def hang_up() -> None:
            with suppress(OSError):  # the listener is closed
                while True:
                    listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        error = refused(Ssh(SshTarget("127.0.0.1", "root", port), options(Sshd(tmp_path), known="")))
    assert "no SSH session came about" in error.problem


def test_a_connection_that_ends_in_the_middle_is_an_error_and_the_next_run_dials_again(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=120)
    timer = threading.Timer(0.7, server.cut)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(TransportError, match="connection lost"):
        ssh.run("echo begun; sleep 100", timeout_s=120)
    assert time.monotonic() - begin < 90
    ssh.reconnect()
    assert ssh.run("echo back", timeout_s=120).stdout == b"back\n"
    ssh.close()


def test_nothing_holds_a_connection_that_was_hung_up(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Transport]] = []

    class Watched(Transport):
        def __init__(self, link: socket.socket | paramiko.Channel) -> None:
            super().__init__(link)
            made.append(weakref.ref(self))

    monkeypatch.setattr("gpunode.transport.ssh.Transport", Watched)
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=120)
    ssh.reconnect()
    deadline = time.monotonic() + 60
    while made[0]() is not None and time.monotonic() < deadline:  # its thread may still be on its way out
        gc.collect()
    assert [one() for one in made] == [None]
    ssh.close()


def test_what_was_closed_is_not_dialled_again(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    ssh.run("true", timeout_s=120)
    ssh.reconnect()
    ssh.run("true", timeout_s=120)
    ssh.close()
    with pytest.raises(NotReached, match="the connection was closed"):
        ssh.run("true", timeout_s=120)
    assert (server.directory / "log").read_text().count("Accepted") == 2


@pytest.mark.parametrize("where", ["start_client", "get_remote_server_key", "set_keepalive"])
def test_one_that_is_closed_while_it_logs_in_goes_no_further(
    sshd: Start, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    real = getattr(paramiko.Transport, where)

    def closed_meanwhile(transport: paramiko.Transport, *words: object, **more: object) -> object:
        ssh.close()
        return real(transport, *words, **more)

    monkeypatch.setattr(paramiko.Transport, where, closed_meanwhile)
    with pytest.raises(NotReached, match="the connection was closed"):
        ssh.run("true", timeout_s=120)
    accepted = (server.directory / "log").read_text().count("Accepted")
    assert accepted == (where == "set_keepalive"), "nobody logs in for one who has gone"


def test_a_handshake_under_way_ends_when_it_is_closed(tmp_path: Path) -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        place = SshTarget("127.0.0.1", "root", listener.getsockname()[1])
        ssh, said = Ssh(place, options(Sshd(tmp_path), known="")), list[TransportError]()
        thread = threading.Thread(target=lambda: said.append(refused(ssh)), daemon=True)
        thread.start()
        connection, _ = listener.accept()  # and says nothing
        while ssh._beginning is None:
            time.sleep(0.01)
        ssh.close()
        thread.join(30)
        connection.close()
    assert ["the connection was closed" in error.problem for error in said] == [True]


def test_one_connection_serves_all_runs(sshd: Start) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    for _ in range(3):
        ssh.run("true", timeout_s=120)
    assert len(server.sessions()) == 1
    assert (server.directory / "log").read_text().count("Accepted publickey") == 1
    ssh.close()


def in_shell(shell: str, *flags: str) -> str:
    return f'{shell} {" ".join(flags)} -c "$SSH_ORIGINAL_COMMAND"'


@pytest.mark.parametrize("shell", ["dash", "bash", "fish", "zsh", "tcsh", "rbash"])
def test_login_shells(sshd: Start, shell: str) -> None:
    """The rows whose shell is not installed are skipped."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    server = sshd(force=in_shell(path, *(("-f",) if shell in ("tcsh", "zsh") else ())))
    ssh = Ssh(target(server), options(server))
    awkward = "x='it'\"'\"'s !1 $HOME'\nprintf '%s\\\\n%s' \"$x\" \"${x#it}\"\n# " + "ä!'\\\n# " * 3000
    want = b"it's !1 $HOME\\n's !1 $HOME"
    assert ssh.run(awkward, timeout_s=120).stdout == want
    assert ssh.run(awkward + "\ncat", stdin=b"\0!'\\\n", timeout_s=120).stdout == want + b"\0!'\\\n"
    ssh.close()


@pytest.mark.parametrize(
    "noise",
    ["echo Welcome; echo warned >&2;", "read eaten;", "printf 'no newline';"],
    ids=["a truncated banner", "an rc file that eats a line of stdin", "a banner without a newline"],
)
def test_noisy_start_up_files(sshd: Start, noise: str) -> None:
    server = sshd(force=f'{noise} exec sh -c "$SSH_ORIGINAL_COMMAND"')
    ssh = Ssh(target(server), options(server))
    done = ssh.run(ECHO, stdin=b"one\ntwo\n", timeout_s=120)
    assert (done.stdout, done.stderr) == (b"42\none\ntwo\n", b"")
    if "read" not in noise:
        assert ssh.run("echo probe", timeout_s=120).stdout == b"probe\n"
    ssh.close()


@pytest.mark.parametrize(
    ("force", "said"),
    [
        ("echo This account is currently not available.; exit 1", "This account is currently not available."),
        ("false", "no output, exit status 1"),
        ("PATH=/nonexistent; $SSH_ORIGINAL_COMMAND", "sh"),
    ],
    ids=["nologin", "false", "no sh"],
)
def test_hosts_that_run_nothing(sshd: Start, force: str, said: str) -> None:
    server = sshd(force=force)
    error = refused(Ssh(target(server), options(server)))
    assert said in error.evidence
    assert error.remedy.text


def test_a_login_shell_that_cuts_long_words_gets_the_script_on_stdin(sshd: Start) -> None:
    cuts = 'test "${#SSH_ORIGINAL_COMMAND}" -lt 2000 || { echo Word too long. >&2; exit 1; }; '
    server = sshd(force=cuts + 'exec sh -c "$SSH_ORIGINAL_COMMAND"')
    ssh = Ssh(target(server), options(server))
    assert ssh.run("# " + "x" * 5000 + "\necho in", timeout_s=120).stdout == b"in\n"
    ssh.close()


def test_a_script_whose_output_goes_elsewhere_runs_once(sshd: Start, tmp_path: Path) -> None:
    server = sshd(force='exec >/dev/null; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    ssh = Ssh(target(server), options(server))
    with pytest.raises(TransportError):
        ssh.run(f"echo x >>{tmp_path}/ran; exit 3", timeout_s=120)
    ssh.close()
    assert (tmp_path / "ran").read_text() == "x\n"


def test_a_login_shell_that_waits_for_ever_is_an_error_in_time(sshd: Start) -> None:
    server = sshd(force="sleep 20")
    assert "no script began within" in refused(Ssh(target(server), options(server)), timeout_s=1).problem


def test_jump_hosts_in_a_chain_and_the_config_file(sshd: Start) -> None:
    one, two, inner = sshd(), sshd(), sshd()
    user = target(one).user
    known = "".join(f"[127.0.0.1]:{s.port} {s.host_key}\n" for s in (one, two, inner))
    config = one.directory / "config"
    (one.directory / "more").write_text(
        f"Host inner\n HostName 127.0.0.1\n Port {inner.port}\n User {user}\n IdentityFile {inner.identity}\n"
        f" UserKnownHostsFile {one.directory}/known_hosts\n IdentitiesOnly yes\n ProxyJump one,two\n"
    )
    config.write_text(
        f"Include {one.directory}/more\n"
        + "".join(
            f"Host {name}\n HostName 127.0.0.1\n Port {s.port}\n User {user}\n IdentityFile {s.identity}\n"
            f" UserKnownHostsFile {one.directory}/known_hosts\n"
            for name, s in (("one", one), ("two", two))
        )
    )
    flags = options(one, known, config=(config,), known_hosts=None, identities=())
    ssh = Ssh(SshTarget("inner"), flags)
    assert ssh.run("echo deep", timeout_s=120).stdout == b"deep\n"
    for server in (one, two, inner):
        assert (server.directory / "log").read_text().count("Accepted publickey") == 1
    ssh.close()


def test_jump_hosts_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    flags = options(Sshd(tmp_path), known="", config=(tmp_path / "config",))
    assert "circle" in refused(Ssh(SshTarget("a", "root"), flags)).problem


def test_a_proxy_command_carries_the_connection(sshd: Start) -> None:
    server = sshd()
    relay = server.directory / "relay.py"
    relay.write_text(
        "import os, socket, sys, threading\n"
        "link = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): link.sendall(data)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := link.recv(65536): os.write(1, data)\n"
    )
    config = server.directory / "config"
    config.write_text(
        f"Host far\n HostName 127.0.0.1\n Port {server.port}\n ProxyCommand {sys.executable} {relay} %h %p\n"
    )
    ssh = Ssh(SshTarget("far", target(server).user), options(server, config=(config,)))
    assert ssh.run("echo through", timeout_s=120).stdout == b"through\n"
    ssh.close()


def test_a_dead_proxy_command_is_an_error_in_time(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host far\n ProxyCommand false\n")
    ssh = Ssh(SshTarget("far", "root"), options(Sshd(tmp_path), known="", config=(tmp_path / "config",)))
    assert "no SSH session" in refused(ssh).problem


def test_a_proxy_command_that_takes_no_signal_ends(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    proxy = Proxy(f"sh -c 'trap \"\" TERM; touch {mark}; while :; do sleep 1; done'")
    while not mark.exists():
        time.sleep(0.05)
    closing = threading.Thread(target=proxy.close, daemon=True)
    closing.start()
    closing.join(60)
    ended = not closing.is_alive()
    proxy._process.kill()
    assert ended


def test_match_exec_in_the_config_works(sshd: Start) -> None:
    server = sshd()
    (server.directory / "config").write_text(f'Match exec "true"\n HostName 127.0.0.1\n Port {server.port}\n')
    flags = options(server, config=(server.directory / "config",))
    ssh = Ssh(SshTarget("anything", target(server).user), flags)
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()


@pytest.fixture
def through(sshd: Start) -> Iterator[Callable[[Path, str | None], Ssh]]:
    """A host whose login finds these programs alone, and is not root's."""
    opened = []

    def make(programs: Path, password: str | None) -> Ssh:
        server = sshd(force=f'PATH={programs}; exec sh -c "$SSH_ORIGINAL_COMMAND"')
        secret = None if password is None else SudoPassword(Secret(password))
        opened.append(Ssh(target(server), options(server, become="always", become_password=secret)))
        return opened[-1]

    yield make
    for ssh in opened:
        ssh.close()


Through = Callable[[Path, str | None], Ssh]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sudo_password_is_given_when_asked_and_never_shown(through: Through, tmp_path: Path, dialect: str) -> None:
    done = through(stand_in(tmp_path, dialect), PASSWORD).run(ECHO, stdin=b"payload\n", timeout_s=120)
    assert (done.stdout, done.stderr) == (b"42\npayload\n", b"")
    assert "sesame" not in (tmp_path / "argv").read_text() + (tmp_path / "environ").read_text()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_sudo_password_is_tried_once(through: Through, tmp_path: Path, dialect: str) -> None:
    error = refused(through(stand_in(tmp_path, dialect), "open barley"))
    assert "sudo refused the password" in error.problem
    assert type(error) is PasswordRefused
    assert error.check == "fleet.ssh-sudo"
    assert (tmp_path / "tries").read_text() == "x\n"
    assert "barley" not in error.problem + error.evidence + error.remedy.text


def test_a_refused_password_is_an_error_where_sudo_cannot_be_killed(sshd: Start, tmp_path: Path) -> None:
    """No second channel beside the first: its input ends instead, and it counts that as it likes."""
    programs = stand_in(tmp_path, "sudo-rs")
    server = sshd(force=f'PATH={programs}; exec sh -c "$SSH_ORIGINAL_COMMAND"', extra="MaxSessions 1")
    ssh = Ssh(target(server), options(server, become="always", become_password=SudoPassword(Secret("open barley"))))
    assert "sudo refused the password" in refused(ssh).problem


def test_a_sudo_that_asks_nothing_is_sent_no_password(through: Through, tmp_path: Path) -> None:
    (tmp_path / "nopasswd").touch()
    assert through(stand_in(tmp_path, "sudo"), PASSWORD).run("cat", stdin=b"data", timeout_s=120).stdout == b"data"


@pytest.mark.parametrize("password", [PASSWORD, None])
def test_a_sudo_that_wants_a_terminal_gets_one_and_the_answer_stays_exact(
    through: Through, tmp_path: Path, password: str | None
) -> None:
    """No byte goes through that terminal: it would end, stop or change some of these."""
    programs, awkward = stand_in(tmp_path, "sudo"), b"\x03\x04\r\n\x11\x13\x00\xff\n"
    (tmp_path / "requiretty").touch()
    (programs / "script").symlink_to(str(shutil.which("script")))
    if password is None:
        (tmp_path / "nopasswd").touch()
    ssh = through(programs, password)
    for _ in range(2):
        done = ssh.run("cat; echo said >&2; exit 7", stdin=awkward, timeout_s=120)
        assert (done.code, done.stdout, done.stderr) == (7, awkward, b"said\n")
    assert (tmp_path / "argv").read_text().count("this shell may") == 3  # it is refused once, and then known
    assert "sesame" not in (tmp_path / "argv").read_text() + (tmp_path / "environ").read_text()


def test_a_wrong_password_at_a_terminal_is_tried_once(through: Through, tmp_path: Path) -> None:
    programs = stand_in(tmp_path, "sudo")
    (tmp_path / "requiretty").touch()
    (programs / "script").symlink_to(str(shutil.which("script")))
    assert "sudo refused the password" in refused(through(programs, "open barley")).problem
    assert (tmp_path / "tries").read_text() == "x\n"


def test_a_terminal_that_cannot_be_made_is_a_refusal_with_a_remedy(through: Through, tmp_path: Path) -> None:
    (tmp_path / "requiretty").touch()
    error = refused(through(stand_in(tmp_path, "sudo"), None))
    assert "sudo wants a terminal (requiretty), and none could be made for it" in error.problem
    assert "!requiretty" in error.remedy.text


def test_doas_makes_root_where_there_is_no_sudo(through: Through, tmp_path: Path) -> None:
    (tmp_path / "nopass").touch()
    assert through(doas(tmp_path), None).run("cat", stdin=b"data", timeout_s=120).stdout == b"data"


def test_a_login_that_misses_sh_says_so(through: Through, tmp_path: Path) -> None:
    programs = neither(tmp_path)
    assert "has no sudo and no doas" in refused(through(programs, None)).problem


def test_an_agent_signs_for_a_key_with_a_passphrase(sshd: Start, tmp_path: Path) -> None:
    server = sshd()
    locked = server.keygen("locked", "-N", "phrase")
    (server.directory / "id.pub").write_bytes(locked.with_suffix(".pub").read_bytes())
    plain = server.directory / "plain"
    shutil.copy(locked, plain)
    subprocess.run(
        ("ssh-keygen", "-q", "-p", "-P", "phrase", "-N", "", "-f", str(plain)), check=True, capture_output=True
    )
    agent = subprocess.Popen(("ssh-agent", "-D", "-a", str(tmp_path / "agent")), stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if (tmp_path / "agent").exists():
                break
            time.sleep(0.05)
        environment = {**os.environ, "SSH_AUTH_SOCK": str(tmp_path / "agent")}
        subprocess.run(("ssh-add", "-q", str(plain)), env=environment, check=True, capture_output=True)
        flags = options(server, identities=(locked,), agent=True)
        code = (
            "from pathlib import *\nfrom gpunode.transport.ssh import Ssh\nfrom gpunode.transport.ssh_config import *\n"
            f"ssh = Ssh({target(server)!r}, {flags!r})\nprint(ssh.run('echo signed', timeout_s=99).stdout)\nssh.close()"
        )
        shown = subprocess.run(
            (sys.executable, "-c", code), env=environment, capture_output=True, text=True, check=False
        )
    finally:
        agent.terminate()
        agent.wait()
    assert shown.stdout == "b'signed\\n'\n", shown.stderr


def test_importing_the_transport_leaves_invoke_alone() -> None:
    code = "import sys, gpunode.transport.ssh; assert 'invoke' not in sys.modules"
    assert subprocess.run((sys.executable, "-c", code), check=False).returncode == 0
