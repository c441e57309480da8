"""What is changed in paramiko is still what it was: a MAC that differs ends the connection."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_library import paramiko
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
    with pytest.raises(paramiko.SSHException, match="Mismatched MAC"):
        transport.open_session(timeout=60)
    assert not transport.is_active()
    host.close()
