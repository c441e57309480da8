"""RevokedHostKeys of ssh's config holds for gpunode as well: what it cannot tell apart, it refuses, as ssh does."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.known_hosts import HostKey
from gpunode.transport.revoked_keys import revoked
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshOptions, SshTarget, resolve
from tests.transport.conftest import need_sshd as need_sshd
from tests.transport.conftest import options, target
from tests.transport.conftest import sshd as sshd
from tests.transport.sshd import Sshd

Start = Callable[..., Sshd]


def log_in(server: Sshd, line: str, *, known: bool = True) -> str:
    """ "" where gpunode logs in with this line in its config, else what it says."""
    (server.directory / "config").write_text(f"Host far\n HostName 127.0.0.1\n Port {server.port}\n{line}\n")
    text = f"[127.0.0.1]:{server.port} {server.host_key}\n" if known else ""
    flags = options(server, text, config=(server.directory / "config",), accept_new=not known)
    ssh = Ssh(SshTarget("far", target(server).user), flags)
    try:
        assert ssh.run("echo in", timeout_s=600).stdout == b"in\n"
    except TransportError as error:
        return f"{error.problem} ({error.evidence})"
    finally:
        ssh.close()
    return ""


def ssh_logs_in(server: Sshd) -> bool:
    """The same config and known_hosts, asked of ssh itself."""
    program = shutil.which("ssh")
    assert program is not None
    words = (program, "-F", server.directory / "config", "-i", server.identity, "-o", "BatchMode=yes")
    known = ("-o", f"UserKnownHostsFile={server.directory}/known_hosts", "-o", "GlobalKnownHostsFile=none")
    command = (*words, *known, f"{target(server).user}@far", "true")
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def other_key(server: Sshd) -> str:
    return server.keygen("other").with_suffix(".pub").read_text()


ROWS: dict[str, tuple[Callable[[Sshd], str | None], str]] = {
    "the host's key": (lambda s: f"# stolen in May\n\n{s.host_key} stolen\n", "is revoked"),
    "the host's key among others": (lambda s: f"{other_key(s)}{s.host_key}\n{other_key(s)}", "is revoked"),
    "another key": (other_key, ""),
    "nothing": (lambda s: "# none yet\n", ""),
    "no such file": (lambda s: None, "no host key is accepted"),
    "a line that is no key": (lambda s: f"{other_key(s)}ssh-ed25519 nonsense\n", "line 2 is no public key"),
    "half a key": (lambda s: f"{other_key(s)[:40]}\n", "line 1 is no public key"),
    "a key of another type than it says": (lambda s: s.host_key.replace("ed25519", "rsa", 1), "no public key"),
}


@pytest.mark.parametrize(("content", "said"), ROWS.values(), ids=ROWS)
def test_a_file_of_revoked_keys(sshd: Start, content: Callable[[Sshd], str | None], said: str) -> None:
    server = sshd()
    text = content(server)
    if text is not None:
        (server.directory / "revoked").write_text(text)
    heard = log_in(server, f" RevokedHostKeys {server.directory}/revoked")
    assert (said in heard) if said else heard == ""
    assert ssh_logs_in(server) is (said == "")


def test_a_revoked_key_is_not_remembered_by_accept_new(sshd: Start) -> None:
    server = sshd()
    (server.directory / "revoked").write_text(server.host_key)
    assert "is revoked" in log_in(server, f" RevokedHostKeys {server.directory}/revoked", known=False)
    assert (server.directory / "known_hosts").read_text() == ""


def binary_list(server: Sshd, key: str) -> str:
    """The line for the config."""
    (server.directory / "listed.pub").write_text(f"{key}\n")
    command = ("ssh-keygen", "-q", "-k", "-f", str(server.directory / "krl"), str(server.directory / "listed.pub"))
    subprocess.run(command, check=True)
    return f" RevokedHostKeys {server.directory}/krl"


@pytest.mark.parametrize("revoked_one", [True, False])
def test_a_binary_revocation_list(sshd: Start, revoked_one: bool) -> None:
    server = sshd()
    heard = log_in(server, binary_list(server, server.host_key if revoked_one else other_key(server)))
    assert ("is revoked" in heard and f"{server.directory}/krl" in heard) if revoked_one else heard == ""
    assert ssh_logs_in(server) is not revoked_one


def test_half_a_binary_revocation_list_refuses_every_host(sshd: Start) -> None:
    server = sshd()
    line = binary_list(server, other_key(server))
    (server.directory / "krl").write_bytes((server.directory / "krl").read_bytes()[:20])
    assert "ssh-keygen -Q says" in log_in(server, line)
    assert not ssh_logs_in(server)


def test_a_binary_revocation_list_without_ssh_keygen_is_refused_with_the_reason(
    sshd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd()
    line = binary_list(server, other_key(server))
    with monkeypatch.context() as change:
        change.setenv("PATH", str(server.directory))
        heard = log_in(server, line)
    assert "binary key revocation list, which only ssh-keygen reads" in heard
    assert "ssh refuses" not in heard


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_what_is_no_file_is_refused_and_not_waited_for(sshd: Start, kind: str) -> None:
    server = sshd()
    path = server.directory / "revoked"
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    assert "no host key is accepted" in log_in(server, f" RevokedHostKeys {path}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody who may not read the file")
def test_an_unreadable_file_refuses_every_host() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = Path(directory) / "revoked"
        path.write_text("")
        path.chmod(0)
        os.seteuid(65534)
        try:
            with pytest.raises(TransportError, match="no host key is accepted") as caught:
                revoked(path, HostKey("ssh-ed25519", b"key"))
        finally:
            os.seteuid(0)
    assert "Permission denied" in caught.value.evidence


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("~/.ssh/revoked", Path("/home/ann/.ssh/revoked")),
        ("%d/revoked", Path("/home/ann/revoked")),
        ("none", None),
        ("", None),
    ],
)
def test_where_the_file_is(word: str, path: Path | None) -> None:
    found = resolve(SshTarget("far"), SshOptions(home=Path("/home/ann")), lambda alias: {"revokedhostkeys": word})
    assert found.revoked_keys == path


def test_a_jump_host_is_held_to_it_too(sshd: Start) -> None:
    bend, server = sshd(), sshd()
    (server.directory / "revoked").write_text(bend.host_key)
    known = f"[127.0.0.1]:{server.port} {server.host_key}\n[127.0.0.1]:{bend.port} {bend.host_key}\n"
    (server.directory / "config").write_text(f"Host *\n RevokedHostKeys {server.directory}/revoked\n")
    flags = options(server, known, config=(server.directory / "config",), identities=(bend.identity, server.identity))
    ssh = Ssh(target(server), SshOptions(**{**vars(flags), "jump": f"{target(server).user}@127.0.0.1:{bend.port}"}))
    with pytest.raises(TransportError, match="is revoked"):
        ssh.run("echo in", timeout_s=600)
    ssh.close()
