from __future__ import annotations

import pytest

from gpunode.errors import UsageError
from gpunode.fleet.inventory import parse_ssh_targets, words
from gpunode.transport.ssh_config import SshTarget


@pytest.mark.parametrize(
    ("values", "want"),
    [
        (["h1,h2"], ["h1", "h2"]),
        (["h1", "h2 , h1", "h3"], ["h1", "h2", "h3"]),
        (["root@gpu07:2222"], ["root@gpu07:2222"]),
        (["a@corp@gpu07"], ["a@corp@gpu07"]),
        (["ssh://root@gpu[07-08]:2222"], ["root@gpu07:2222", "root@gpu08:2222"]),
        (["[2001:db8::7]:22,root@[::1]"], ["[2001:db8::7]:22", "root@[::1]"]),
        (["[fe80::1%eth0]"], ["[fe80::1%eth0]"]),
        (["gpu[01-03].example"], ["gpu01.example", "gpu02.example", "gpu03.example"]),
        (["n[9-11]"], ["n9", "n10", "n11"]),
        (["n[098-101]"], ["n098", "n099", "n100", "n101"]),
        (["n[1,3,7-8]x,m"], ["n1x", "n3x", "n7x", "n8x", "m"]),
        (["r[1-2]n[1-2]"], ["r1n1", "r1n2", "r2n1", "r2n2"]),
        (["u@n[1-2]:[2201-2202]"], ["u@n1:2201", "u@n1:2202", "u@n2:2201", "u@n2:2202"]),
        (["10.0.0.[1-2]"], ["10.0.0.1", "10.0.0.2"]),
    ],
    ids=[
        "a list",
        "repeated hosts count once, order stays",
        "user and port",
        "a user with an at sign",
        "a URI of ssh",
        "IPv6 in brackets",
        "IPv6 with a zone",
        "a range keeps its zeros",
        "a range without zeros grows",
        "a range with zeros grows past its width",
        "a list inside brackets",
        "two ranges multiply",
        "a range of ports",
        "a range of addresses",
    ],
)
def test_parse(values: list[str], want: list[str]) -> None:
    assert [str(target) for target in parse_ssh_targets(values)] == want


def test_parts_are_apart() -> None:
    assert parse_ssh_targets(["root@[::1]:2222"]) == (SshTarget("::1", "root", 2222),)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "an empty host name"),
        ("a,,b", "an empty host name"),
        ("gpu[3-1]", "[3-1] goes backwards"),
        ("gpu[1-", "'gpu[1-' is not a host"),
        ("gpu[a-b]", "is not a host"),
        ("gpu[1--3]", "[1--3] is not a range"),
        ("gpu[1-999999]", "is too long"),
        ("a[1-999]b[1-999]", "names 998001 hosts"),
        (f"a[{','.join(['0-9999'] * 9)}]", "names more hosts than one run takes"),
        (f"a{'[1-9999]' * 99}", "names 99980001 hosts or more"),
        ("a" * 200_001, "a word of 200001 characters is no host's"),
        ("h:99999", "port 99999 does not exist"),
        ("h:0", "port 0 does not exist"),
        ("h:ssh", "'h:ssh' is not a host"),
        ("fe80::1", "stands in brackets"),
        ("-oProxyCommand=x", "is not a host"),
        ("a b", "is not a host"),
        ("@/nosuch/h", "--ssh @/nosuch/h cannot be read (No such file"),
    ],
)
def test_faults(value: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ssh_targets([value])
    assert said in caught.value.problem


def test_all_faults_are_told_together() -> None:
    with pytest.raises(UsageError) as caught:
        parse_ssh_targets(["good,h:0", "gpu[2-1]", "a b"])
    assert all(said in caught.value.problem for said in ("port 0", "goes backwards", "'a b'"))


def test_naming_nobody_is_a_fault() -> None:
    with pytest.raises(UsageError, match="no host is named"):
        parse_ssh_targets([])


def test_what_is_too_much_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    numbers = words._numbers

    def noted(part: str, text: str, word: str) -> list[str]:
        made.append(part)
        return numbers(part, text, word)

    monkeypatch.setattr(words, "_numbers", noted)
    for word in (f"a[{','.join(['0-9999'] * 2000)}]", "a" + "[1-9999]" * 2000):
        made.clear()
        with pytest.raises(UsageError) as caught:
            parse_ssh_targets([word])
        assert len(made) == 2
        assert len(caught.value.problem) < 400
