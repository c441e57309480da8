"""What is changed in paramiko is still what it was: a MAC that differs ends the connection, a token is expanded."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from typing import Any

import pytest

from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_library import Config, paramiko
from gpunode.transport.ssh_socket import Link
from tests.transport.conftest import options, target
from tests.transport.test_pipelining import Start


@pytest.mark.parametrize(
    ("one", "other", "same"), [(b"ab", b"ab", True), (b"ab", b"ac", False), (b"ab", b"abc", False), (b"", b"", True)]
)
def test_macs_are_compared(one: bytes, other: bytes, same: bool) -> None:
    assert paramiko.util.constant_time_bytes_eq(one, other) is same


def test_a_packet_with_another_mac_is_not_read(sshd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sshd()
    host = Ssh(target(server), options(server))
    assert host.run("echo one", timeout_s=120).stdout == b"one\n"
    transport = host._chain[-1]
    inner = paramiko.packet.compute_hmac

    def other(*words: Any) -> bytes:
        mac: bytes = inner(*words)
        return bytes(len(mac)) if threading.current_thread() is transport else mac  # of what comes in

    monkeypatch.setattr(paramiko.packet, "compute_hmac", other)
    with pytest.raises((paramiko.SSHException, EOFError)) as refused:
        transport.open_session(timeout=60)
    transport.join(60)
    why = transport.get_exception() or refused.value  # sshd may say its last word on `echo` before it is asked for more
    assert "Mismatched MAC" in str(why)
    assert not transport.is_active()
    host.close()


def test_a_value_without_a_token_asks_for_none_of_this_machines_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def name() -> str:
        asked.append("name")
        return "here.example.org"

    monkeypatch.setattr(socket, "gethostname", name)
    plain = "Host *\n  User ann\n  IdentityFile /keys/id\n  UserKnownHostsFile /keys/known\n"
    assert Config.from_text(plain).lookup("gpu07") | {"hostname": "x"} == {
        "user": "ann", "identityfile": ["/keys/id"], "userknownhostsfile": "/keys/known", "hostname": "x",
    }  # fmt: skip
    assert not asked
    tokens = "Host *\n  User ann\n  HostName %h.example.org\n  IdentityFile ~/.ssh/%h_%r\n"
    found = Config.from_text(tokens).lookup("gpu07")
    assert list(found["identityfile"]) == ["~/.ssh/gpu07.example.org_ann"]
    assert found["hostname"] == "gpu07.example.org"
    assert not asked
    here = Config.from_text("Host *\n  IdentityFile /keys/%L\n").lookup("gpu07")
    assert (list(here["identityfile"]), asked) == (["/keys/here"], ["name"])


def test_what_came_at_once_is_handed_out_in_the_pieces_that_are_asked_for() -> None:
    near, far = socket.socketpair()
    with Link(near) as link, far:
        far.sendall(b"one two")
        far.sendall(b" three")
        assert (link.recv(3), link.recv(1), link.recv(4), link.recv(100)) == (b"one", b" ", b"two ", b"three")
        link.settimeout(0.01)
        with pytest.raises(TimeoutError):
            link.recv(1)
        far.sendall(b"x" * 100_000)
        link.settimeout(60)
        came = b""
        while len(came) < 100_000:
            came += link.recv(7)
        assert came == b"x" * 100_000
        far.shutdown(socket.SHUT_WR)
        assert [link.recv(4), link.recv(4)] == [b"", b""]


def test_what_is_at_hand_comes_whole_or_not_at_all() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours)
    assert link.at_hand(1) == b""
    theirs.sendall(b"abcdef")
    assert link.recv(2) == b"ab"
    assert link.at_hand(3) == b"cde"
    assert link.at_hand(2) == b""
    assert link.recv(5) == b"f"
    assert link.at_hand(1) == b""
    theirs.close()
    assert link.recv(1) == b""
    link.close()


@pytest.mark.parametrize("name", ["sha1", "sha256", "sha512"])
def test_a_mac_is_what_the_standard_library_makes(name: str) -> None:
    kind = getattr(hashlib, name)
    assert paramiko.packet.compute_hmac(b"key", b"text", kind) == hmac.new(b"key", b"text", kind).digest()
