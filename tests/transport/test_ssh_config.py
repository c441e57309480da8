from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.errors import TransportError, UsageError
from gpunode.transport.ssh_config import SshOptions, SshTarget, parse_target, resolve

HOME = Path("/home/ann")
FOUND = {
    "hostname": "10.0.0.7",
    "user": "configured",
    "port": "2200",
    "identityfile": ["~/.ssh/lab", "/keys/two"],
    "proxyjump": "a,b:22",
    "connecttimeout": "3",
    "userknownhostsfile": "~/one /two",
}


def flags(**given: object) -> SshOptions:
    return SshOptions(**{"home": HOME, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "options", "want"),
    [
        (
            SshTarget("gpu07"),
            flags(),
            {"host": "10.0.0.7", "user": "configured", "port": 2200, "key_names": ("[10.0.0.7]:2200", "10.0.0.7")},
        ),
        (SshTarget("gpu07"), flags(user="flag", port=22), {"user": "flag", "port": 22}),
        (SshTarget("gpu07", "typed", 23), flags(user="flag", port=22), {"user": "typed", "port": 23}),
        (SshTarget("gpu07"), flags(), {"jumps": ("a", "b:22"), "connect_timeout_s": 3}),
        (SshTarget("gpu07"), flags(jump="c", connect_timeout_s=9), {"jumps": ("c",), "connect_timeout_s": 9}),
        (SshTarget("gpu07"), flags(jump="none"), {"jumps": ()}),
        (SshTarget("gpu07"), flags(), {"identities": (HOME / ".ssh/lab", Path("/keys/two"))}),
        (
            SshTarget("gpu07"),
            flags(identities=(Path("/k"),)),
            {"identities": (Path("/k"), HOME / ".ssh/lab", Path("/keys/two"))},
        ),
        (SshTarget("gpu07"), flags(), {"user_known_hosts": (HOME / "one", Path("/two"))}),
    ],
    ids=[
        "the config gives what nobody typed",
        "flags win over the config",
        "what stands in the target wins over flags",
        "jumps and timeout from the config",
        "flags for jump and timeout win",
        "--jump none dials directly",
        "identities from the config, ~ expanded",
        "--identity comes first",
        "known_hosts files from the config",
    ],
)
def test_resolve(target: SshTarget, options: SshOptions, want: dict[str, object]) -> None:
    hop = resolve(target, options, lambda alias: FOUND)
    assert {name: getattr(hop, name) for name in want} == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("ssh://ann@b:2222", SshTarget("b", "ann", 2222)),
        ("ssh://b/", SshTarget("b")),
        ("ssh://[::1]:22/", SshTarget("::1", None, 22)),
        ("corp/ann@b", SshTarget("b", "corp/ann")),
    ],
)
def test_a_uri_of_ssh_is_a_host(text: str, want: SshTarget) -> None:
    assert parse_target(text) == want


@pytest.mark.parametrize("text", ["http://ann@b", "ssh://ssh://ann@b", "ssh://b/x", "b/", "ssh://"])
def test_another_uri_is_no_user_and_host(text: str) -> None:
    with pytest.raises(UsageError, match="is not a host"):
        parse_target(text)


def test_without_a_config_the_defaults_are_sshs() -> None:
    hop = resolve(SshTarget("gpu07", "ann"), flags(), lambda to: {"hostname": to.host})
    assert (hop.host, hop.port, hop.connect_timeout_s) == ("gpu07", 22, 10)
    assert [path.name for path in hop.identities] == ["id_ed25519", "id_ecdsa", "id_rsa"]
    assert hop.user_known_hosts[0] == HOME / ".ssh/known_hosts"


def test_flags_of_the_target_are_not_its_jump_hosts() -> None:
    hop = resolve(SshTarget("a", "ann"), flags(port=2222, jump="b"), lambda to: {"hostname": to.host}, jump=True)
    assert (hop.port, hop.jumps) == (22, ())


def test_a_port_that_is_no_number_is_told() -> None:
    with pytest.raises(TransportError, match="port 'ssh' is not a number"):
        resolve(SshTarget("gpu07", "ann"), flags(), lambda alias: {"port": "ssh"})


def test_a_time_that_is_none_is_told() -> None:
    with pytest.raises(TransportError, match="connecttimeout '5 minutes' is not a time"):
        resolve(SshTarget("gpu07", "ann"), flags(), lambda to: {"connecttimeout": "5 minutes"})


@pytest.mark.parametrize("name", ["a`id`", "-oProxyCommand=x", "a;b", "a\nProxyCommand x", "a -b", "a\\"])
def test_a_name_that_a_shell_would_run_is_no_user(name: str) -> None:
    asked = list[SshTarget]()
    with pytest.raises(TransportError, match="is not taken as the name of a user"):
        resolve(SshTarget("gpu07"), flags(user=name), lambda to: asked.append(to) or {})  # type: ignore[func-returns-value]
    assert asked == []
