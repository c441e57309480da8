"""Passwords and passphrases: asked for once a run, or read once from a file or descriptor; in no output."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.hosts import open_hosts
from gpunode.cli.options.groups import LiveOptions
from gpunode.cli.options.passwords import become_password
from gpunode.transport.identities import load
from gpunode.transport.ssh import Ssh

NOBODY = "127.0.0.1:1,127.0.0.1:2"  # two hosts where nobody listens


def locked_key(directory: Path, name: str = "locked", phrase: str = "a phrase") -> Path:
    path = directory / name
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", str(path)), check=True)
    return path


def at_a_terminal(home: Path, words: list[str], answers: list[str]) -> tuple[str, int]:
    """(what the terminal showed, exit code) of gpunode with a terminal of its own; each answer to one question."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "HOME": str(home), "TERM": "dumb"}
        environment.pop("SSH_AUTH_SOCK", None)
        os.execve(sys.executable, [sys.executable, "-m", "gpunode", *words], environment)
    shown, waiting, end = b"", list(answers), time.monotonic() + 100
    with suppress(OSError):  # EIO: it has ended
        while time.monotonic() < end and (piece := os.read(terminal, 4096)):
            shown += piece
            if waiting and piece.rstrip().endswith(b":"):
                os.write(terminal, waiting.pop(0).encode() + b"\n")
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_key_is_asked_for_once_for_all_hosts(tmp_path: Path) -> None:
    key = locked_key(tmp_path)
    shown, code = at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY, "--identity", str(key)], ["not this", "a phrase"])
    assert shown.count("Passphrase for the key") == 2
    assert shown.count("does not open") == 1
    assert "refuses connections" in shown
    assert "a phrase" not in shown
    assert code == 3


def test_nobody_is_asked_for_a_key_that_may_not_be_needed(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    locked_key(tmp_path / ".ssh", "id_ed25519")
    assert "Passphrase for the key" in at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY], [""])[0]
    locked_key(tmp_path / ".ssh", "id_rsa", phrase="")
    assert "Passphrase for the key" not in at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY], [])[0]


def test_the_key_that_the_config_names_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    key = locked_key(tmp_path)
    (tmp_path / ".ssh" / "config").write_text(f"Host 127.*\n IdentityFile {key}\n")
    assert f"Passphrase for the key {key}" in at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY], [""])[0]


def test_a_password_is_asked_for_once_and_only_where_it_was_asked_for(tmp_path: Path) -> None:
    shown, _ = at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY, "--ask-pass"], ["open sesame"])
    assert shown.count("Password for SSH") == 1
    assert "sesame" not in shown
    assert "Password" not in at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY], [])[0]


@pytest.mark.parametrize("answer", ["", "\x04"], ids=["enter", "end of input"])
def test_an_empty_password_for_sudo_is_refused(tmp_path: Path, answer: str) -> None:
    shown, code = at_a_terminal(tmp_path, ["detect", "--ssh", NOBODY, "--ask-become-pass"], [answer])
    assert "the password for sudo is empty" in shown
    assert code == 2


@pytest.mark.parametrize(("text", "password"), [("a\u2028b\x0cc\r\nmore", "a\u2028b\x0cc"), ("a\rb", "a\rb")])
def test_only_a_newline_ends_a_password_in_a_file(text: str, password: str) -> None:
    number = descriptor(text)
    secret = become_password(LiveOptions(become_pass_file=Path(f"/dev/fd/{number}")))
    assert secret is not None
    assert secret.reveal() == password


def descriptor(text: str) -> int:
    """One that a shell's `3< <(...)` gives: a pipe that holds `text`."""
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    return reader


@pytest.mark.parametrize("under", ["/dev/fd", "/proc/self/fd"])
def test_a_descriptor_is_read_once_and_closed(under: str) -> None:
    number = descriptor("open sesame\nmore\n")
    with open_hosts(LiveOptions(ssh=["h1,h2"], become_pass_file=Path(f"{under}/{number}"))) as hosts:
        for host in hosts:
            assert isinstance(host.transport, Ssh)
            password = host.transport._options.become_password
            assert password is not None
            here = password.at_host()
            assert here.take() == b"open sesame\n"
            here.answered(taken=True)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_descriptor_that_is_not_open_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "--ssh", "h1", "--become-pass-file", "/dev/fd/987"]) == 2
    assert "--become-pass-file /dev/fd/987 cannot be read" in capsys.readouterr().err


def test_a_passphrase_in_a_file_opens_the_key(tmp_path: Path) -> None:
    key = locked_key(tmp_path)
    number = descriptor("a phrase\n")
    with open_hosts(LiveOptions(ssh=["h1"], identity=[key], key_pass_file=Path(f"/dev/fd/{number}"))):
        assert load(key).get_name() == "ssh-ed25519"


def test_a_passphrase_that_opens_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, file = locked_key(tmp_path), tmp_path / "phrase"
    file.write_text("another\n")
    assert main(["detect", "--ssh", "h1", "--identity", str(key), "--key-pass-file", str(file)]) == 2
    said = capsys.readouterr().err
    assert "opens none of your keys" in said
    assert str(key) in said.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ssh", "h1", "--ask-pass"], "--ask-pass needs a terminal"),
        (["--ask-pass"], "--ask-pass is for hosts over SSH"),
        (["--key-pass-file", "/x"], "--key-pass-file is for hosts over SSH"),
        (["--ssh", "h1", "--key-pass-file", "/nonexistent"], "--key-pass-file /nonexistent cannot be read"),
        (["--ssh", "h1", "--key-pass-file", "/dev/null"], "--key-pass-file /dev/null has an empty first line"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", *words]) == 2
    assert said in capsys.readouterr().err
