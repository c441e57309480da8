"""What every transport promises, asked of this machine and of a real sshd."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from gpunode.transport.base import StillRunning, Transport
from gpunode.transport.identities import unlock
from gpunode.transport.local import Local
from gpunode.transport.login import LoginPassword
from gpunode.transport.secret import Secret
from gpunode.transport.ssh import Ssh
from gpunode.transport.sudo_password import SudoPassword
from tests.transport.certify import certify, public
from tests.transport.conftest import can_have_passwords, options, target
from tests.transport.sshd import SSHD, Sshd
from tests.transport.sudo import PASSWORD, stand_in

WAYS = (
    *("local", "ssh", "local with sudo's password", "ssh with sudo's password"),
    *("ssh with a certificate of the host", "ssh with a certificate of the user", "ssh with a passphrase"),
    *("ssh with a password", "ssh with sudo's password at a terminal"),
)


@pytest.fixture(scope="module", params=WAYS)
def transport(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transport]:
    how, _, asked = request.param.partition(" with ")
    directory = tmp_path_factory.mktemp("transport")
    if how == "ssh" and SSHD is None:
        pytest.skip("no sshd here: install openssh-server to run the SSH tests")
    if asked == "a password" and not can_have_passwords():
        pytest.skip("needs root, unshare and openssl")
    sudo = asked.startswith("sudo's password")
    if asked.endswith("at a terminal"):
        (directory / "requiretty").touch()
    with pytest.MonkeyPatch.context() as patch:
        password = Secret(PASSWORD) if sudo else None
        path = f"{stand_in(directory, 'sudo')}:{os.environ['PATH']}" if sudo else os.environ["PATH"]
        become: Literal["always", "never"] = "always" if sudo else "never"
        if how == "local":
            patch.setenv("PATH", path)
            yield Local(become=become, password=password)
            return
        server = Sshd(directory, force=f'PATH={path}; exec sh -c "$SSH_ORIGINAL_COMMAND"' if sudo else "")
        flags = arranged(server, asked)
        server.start()
        ssh = Ssh(
            target(server), options(server, become=become, become_password=password and SudoPassword(password), **flags)
        )
        yield ssh
        ssh.close()
        server.stop()


def arranged(server: Sshd, asked: str) -> dict[str, Any]:
    """The options of the one way in that `server` then has."""
    for name in ("host", "id"):
        server.keygen(name)
    if asked == "a certificate of the host":
        certify(server.keygen("ca"), server.directory / "host", "-h")
        server.extra = f"HostCertificate {server.directory}/host-cert.pub"
        return {"known": f"@cert-authority * {public(server.directory / 'ca')}\n"}
    if asked == "a certificate of the user":
        certify(server.keygen("ca"), server.identity, names=getpass.getuser())
        server.extra = f"TrustedUserCAKeys {server.directory}/ca.pub\nAuthorizedKeysFile none"
    elif asked == "a passphrase":
        locked = server.keygen("locked", "-N", PASSWORD)
        assert unlock(locked, Secret(PASSWORD))
        server.extra = f"AuthorizedKeysFile {locked}.pub"
        return {"identities": (locked,)}
    elif asked == "a password":
        server.password = PASSWORD
        server.extra = "PasswordAuthentication yes\nAuthorizedKeysFile none"
        return {"password": LoginPassword(Secret(PASSWORD))}
    return {}


EVERY_BYTE = bytes(range(256)) * 4096  # 1 MiB


@pytest.mark.parametrize(
    ("script", "stdin", "code", "stdout"),
    [
        ("echo hello", b"", 0, b"hello\n"),
        ("exit 7", b"", 7, b""),
        ("printf 'a\\000b\\377\\n'", b"", 0, b"a\0b\xff\n"),
        ("cat", EVERY_BYTE, 0, EVERY_BYTE),
        ("head -c 3; exit 4", EVERY_BYTE, 4, bytes(range(3))),
        ('read -r line; echo "[$line]"; cat', b"\\one\ntwo", 0, b"[\\one]\ntwo"),
        ("cat <<'E'\nit's \"100%\" `no` $HOME !x \\n\tä\nE", b"", 0, 'it\'s "100%" `no` $HOME !x \\n\tä\n'.encode()),
        ("# " + "x" * 200_000 + "\necho big", b"", 0, b"big\n"),
        ("# " + "'!\\\n#" * 40_000 + "\ncat", b"after the script", 0, b"after the script"),
        ("cat", b"", 0, b""),
        ("", b"", 0, b""),
        ("nosuchcommand-at-all", b"", 127, b""),
        ("echo $#", b"", 0, b"0\n"),
    ],
    ids=[
        "output comes back",
        "the exit status comes back",
        "NUL and 0xff survive in output",
        "1 MiB of every byte survives both ways",
        "stdin that nobody reads to its end harms nothing",
        "the script's own read gets the first line of data",
        "quotes, escapes, bangs and UTF-8 survive in the script",
        "a 200 KB script runs",
        "a 200 KB script of awkward characters runs with data behind it",
        "without data stdin is empty",
        "an empty script is a success",
        "a missing program is 127, not an error",
        "the script has no arguments",
    ],
)
def test_run(transport: Transport, script: str, stdin: bytes, code: int, stdout: bytes) -> None:
    done = transport.run(script, stdin=stdin, timeout_s=120)
    assert (done.code, done.stdout) == (code, stdout)


def test_both_streams_come_back_apart(transport: Transport) -> None:
    done = transport.run("echo out; echo err >&2", timeout_s=120)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


def test_much_output_on_both_streams_does_not_block(transport: Transport) -> None:
    done = transport.run("head -c 5000000 /dev/zero >&2; echo last >&2; head -c 4000000 /dev/zero", timeout_s=60)
    assert (done.code, done.stdout) == (0, bytes(4_000_000))
    assert done.stderr.endswith(b"last\n")


def test_a_script_that_takes_too_long_has_no_result(transport: Transport) -> None:
    with pytest.raises(StillRunning, match="still running after") as caught:
        transport.run("echo begun; sleep 90", timeout_s=15)
    assert "6 bytes came" in caught.value.evidence
    assert transport.run("echo next", timeout_s=120).stdout == b"next\n"


def test_what_a_script_leaves_running_does_not_keep_the_run_open(transport: Transport, tmp_path: Path) -> None:
    begin = time.monotonic()
    pid_file = tmp_path / "pid"
    done = transport.run(f"sleep 60 & echo $! >{pid_file}; echo left", timeout_s=120)
    took = time.monotonic() - begin
    os.kill(int(pid_file.read_text()), 15)
    assert (done.code, done.stdout) == (0, b"left\n")
    assert took < 50  # the child lives for 60


def test_every_script_has_a_session_of_its_own(transport: Transport) -> None:
    """By it one that outlives its limit is ended with all that it started (shell/files/end.sh)."""
    session = r"sed -n 's/.*) //p' /proc/$$/stat | cut -d ' ' -f 4"
    found = [int(transport.run(session, timeout_s=120).stdout) for _ in range(2)]
    assert 0 not in found
    assert len({*found, os.getsid(0)}) == 3


def test_tools_speak_english_and_sbin_is_found(transport: Transport) -> None:
    done = transport.run('echo "$LC_ALL"; case :$PATH: in *:/usr/sbin:*) echo yes;; esac', timeout_s=120)
    assert done.stdout == b"C\nyes\n"


def test_a_run_after_reconnect_works(transport: Transport) -> None:
    transport.reconnect()
    transport.reconnect()
    assert transport.run("echo again", timeout_s=120).stdout == b"again\n"
    transport.reconnect()
    assert transport.run("echo and again", timeout_s=120).stdout == b"and again\n"
    transport.close()
    transport.close()
