"""A message names the host once; where it was dialled is added when the name does not say it."""

from __future__ import annotations

import pytest

from gpunode.transport.known_hosts import HostKey
from gpunode.transport.ssh_config import SshOptions, parse_target, resolve
from gpunode.transport.ssh_errors import cannot_connect, login_refused, unknown_key

KEY = HostKey("ssh-ed25519", b"AAAA")


@pytest.mark.parametrize(
    ("name", "found", "refusal", "unknown"),
    [
        ("10.77.0.250", {}, "10.77.0.250: refuses connections", "10.77.0.250: the host key is not known"),
        ("ann@gpu07:2222", {}, "ann@gpu07:2222: refuses connections", "ann@gpu07:2222: the host key is not known"),
        ("[fe80::1]", {}, "[fe80::1]: refuses connections", "[fe80::1]: the host key is not known"),
        (
            "gpu07",
            {"port": "2222"},
            "gpu07: port 2222: refuses connections",
            "gpu07: the host key of port 2222 is not known",
        ),
        (
            "gpu07",
            {"hostname": "10.0.0.7"},
            "gpu07: 10.0.0.7:22: refuses connections",
            "gpu07: the host key of 10.0.0.7:22 is not known",
        ),
    ],
    ids=["an address", "user and port are in the name", "IPv6", "the port is from elsewhere", "an alias"],
)
def test_the_place_is_said_once(name: str, found: dict[str, object], refusal: str, unknown: str) -> None:
    hop = resolve(parse_target(name), SshOptions(), lambda *_: found)
    assert cannot_connect(name, hop, ConnectionRefusedError()).problem == refusal
    assert cannot_connect(name, hop, ConnectionRefusedError()).check == "fleet.ssh-sudo"
    assert unknown_key(name, hop, KEY).problem == unknown
    assert login_refused(name, hop, (), (), "").problem == refusal.replace("connections", f"the login of {hop.user}")
