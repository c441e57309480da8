"""Long scripts travel compressed where the host can unpack them, and plain where it cannot: against a real sshd."""

from __future__ import annotations

import base64
import random
import shutil
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.transport.packed import WORTH_BYTES, deliver_packed, worth_packing
from gpunode.transport.secret import Secret
from gpunode.transport.shell import without_our_words
from gpunode.transport.ssh import Ssh
from gpunode.transport.sudo_password import SudoPassword
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd
from tests.transport.sudo import PASSWORD, stand_in

Start = Callable[..., Sshd]
LONG = "# it's 'long' ! \\ ä\n" * (WORTH_BYTES // 10)  # more than the first flight


def script(log: Path, end: str = "exit 7") -> str:
    """Says by what it came, and leaves a line in `log` whenever it runs."""
    return f'{LONG}echo ran >>{log}\necho "packed: ${{GPUNODE_GZIP:-no}}"; cat\n{end}\n'


def where(sshd: Start, *changes: str) -> Sshd:
    """A host on which these `sed` commands change what the login shell is given: its programs are elsewhere."""
    edits = " ".join(f"-e {change}" for change in changes) or "-e ''"
    return sshd(force=f'exec sh -c "$(printf %s "$SSH_ORIGINAL_COMMAND" | sed {edits})"')


NO_GZIP = ("s#/bin/gzip#/bin/nogzip#g",)
NO_BASE64 = ("s#/bin/base64#/bin/nobase64#g",)
CUTS = ("s#base64.-d#head.-c.3000#g".replace(".", "\\ "),)


@pytest.mark.parametrize(
    ("changes", "by"),
    [((), b"/usr/bin/gzip"), (NO_GZIP, b"no"), (NO_BASE64, b"no"), (CUTS, b"no")],
    ids=["as it is", "no gzip", "no base64", "what unpacks it takes half"],
)
def test_a_long_script_runs_once_however_it_came(
    sshd: Start, tmp_path: Path, changes: tuple[str, ...], by: bytes
) -> None:
    server = where(sshd, *changes)
    ssh = Ssh(target(server), options(server))
    for times in (1, 2):
        done = ssh.run(script(tmp_path / "log"), timeout_s=120)
        assert (done.code, done.stdout.replace(b": /bin/", b": /usr/bin/")) == (7, b"packed: " + by + b"\n")
        assert (tmp_path / "log").read_text() == "ran\n" * times
    ssh.close()


@pytest.mark.parametrize("changes", [(), NO_GZIP], ids=["as it is", "no gzip"])
@pytest.mark.parametrize("password", [None, PASSWORD])
def test_with_sudo_it_is_on_stdin(sshd: Start, tmp_path: Path, changes: tuple[str, ...], password: str | None) -> None:
    programs = stand_in(tmp_path, "sudo")
    if password is None:
        (tmp_path / "nopasswd").touch()
    change = " ".join(f"-e {change}" for change in changes) or "-e ''"
    server = sshd(
        force=f'line=$(printf %s "$SSH_ORIGINAL_COMMAND" | sed {change}); PATH={programs}; exec sh -c "$line"'
    )
    secret = SudoPassword(Secret(password)) if password else None
    ssh = Ssh(target(server), options(server, become="always", become_password=secret))
    done = ssh.run(script(tmp_path / "log"), timeout_s=120)
    assert (done.code, b"packed: no" in done.stdout) == (7, bool(changes)), done
    assert (tmp_path / "log").read_text() == "ran\n"
    assert "long" not in (tmp_path / "argv").read_text()
    assert not (tmp_path / "tries").exists()
    ssh.close()


@pytest.mark.parametrize("shell", ["dash", "bash", "fish", "zsh", "tcsh", "rbash", "busybox sh"])
def test_login_shells(sshd: Start, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    flags = "-f" if shell in ("tcsh", "zsh") else ""
    server = sshd(force=f'{shell} {flags} -c "$SSH_ORIGINAL_COMMAND"')
    ssh = Ssh(target(server), options(server))
    done = ssh.run(script(tmp_path / "log"), timeout_s=120)
    assert (done.code, b"gzip" in done.stdout) == (7, True)
    ssh.close()


def test_the_scripts_own_status_is_not_taken_for_the_wrappers(sshd: Start, tmp_path: Path) -> None:
    server = sshd()
    ssh = Ssh(target(server), options(server))
    assert ssh.run(script(tmp_path / "log", "exit 96"), timeout_s=120).code == 96
    assert (tmp_path / "log").read_text() == "ran\n"
    ssh.close()


def test_what_of_the_environment_is_ours_comes_from_us(sshd: Start, tmp_path: Path) -> None:
    """A script that came plain must not answer through a program that the host's environment names."""
    server = sshd(force=f'GPUNODE_GZIP={tmp_path}/theirs; export GPUNODE_GZIP; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    ssh = Ssh(target(server), options(server))
    assert ssh.run('echo "[${GPUNODE_GZIP:-}]"', timeout_s=120).stdout == b"[]\n"
    ssh.close()


def test_what_is_packed() -> None:
    assert worth_packing(LONG, b"")
    assert not worth_packing(LONG, b"data")
    assert not worth_packing("true", b"")
    noise = random.Random(7).randbytes(200_000).hex()
    assert deliver_packed(LONG).in_argument
    assert not deliver_packed(noise).in_argument  # longer than an argument may be even so
    assert zlib.decompress(deliver_packed(noise).payload.partition(b"packed\n")[2], 31) == noise.encode()


def test_what_sudo_quotes_of_ours_is_not_the_hosts_word() -> None:
    line = deliver_packed(LONG, become=True).argv[-1]
    quoted = f"Sorry, ann may not execute 'sh -c {line}' as root"
    assert without_our_words(quoted) == "Sorry, ann may not execute 'sh -c ...' as root"


@pytest.mark.parametrize("ends", [("", "a", "b", "", "ä\n"), ("same",) * 3, ("x" * 9000, "y" * 9000)], ids=range(3))
def test_scripts_that_begin_alike_are_whole(ends: tuple[str, ...]) -> None:
    random_words = random.Random(7)
    shared = "".join(f"echo {random_words.random()} ü\n" for _ in range(900))
    other = "#" * 2 * WORTH_BYTES
    for script in (other, *(shared + end for end in ends), other, shared):
        delivery = deliver_packed(script)
        raw = base64.b64decode(delivery.argv[-1])
        assert zlib.decompress(raw, wbits=31).decode() == script


def test_what_scripts_have_in_common_is_compressed_once() -> None:
    shared = "".join(f"echo {number} {number * number}\n" for number in range(9000))
    for end in ("first", "second"):
        deliver_packed(shared + end)  # now it is known what is alike

    def cpu(script: str) -> float:
        begin = time.process_time()
        deliver_packed(script)
        return time.process_time() - begin

    alike = min(cpu(f"{shared}{number}") for number in range(9))
    alone = min(cpu(f"{number}{shared}") for number in range(9))
    assert 3 * alike < alone
