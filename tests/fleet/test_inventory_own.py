"""gpunode's own inventories: who is reached how, and what is wanted of whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.inventories import named, read, refused

FLEET = """\
user: root
jump: bastion.example
hosts:
  gpu[01-04].example:
  login01: {address: 192.0.2.7, port: 2222, user: ann, jump: none}
  "2001:db8::7": {identity: keys/v6}
groups:
  h100:
    hosts: gpu[01-02].example, gpu04.example
    spec: {driver: 580, kubernetes: {mode: dra}, runtime: [docker, containerd]}
  lab:
    children: [h100]
    hosts:
      lab01: {spec: {driver: 595}}
      lab[02-03]:
    identity: ~/.ssh/lab
    spec: {driver: 570, toolkit: none}
"""


def test_settings_of_a_host_outweigh_its_groups_and_these_what_is_for_all(tmp_path: Path) -> None:
    found = named(tmp_path, FLEET)
    assert list(found) == [
        *(f"gpu0{n}.example" for n in range(1, 5)), "login01", "[2001:db8::7]", "lab01", "lab02", "lab03"
    ]  # fmt: skip
    login = found["login01"]
    assert (login.target.host, login.target.user, login.target.port, login.jump) == ("192.0.2.7", "ann", 2222, "none")
    gpu = found["gpu01.example"]
    assert (gpu.target.host, gpu.target.user, gpu.target.port, gpu.jump) == (
        "gpu01.example", "root", None, "bastion.example"
    )  # fmt: skip
    assert gpu.identity == Path("~/.ssh/lab").expanduser()
    assert found["gpu03.example"].identity is None
    assert (found["[2001:db8::7]"].target.host, found["[2001:db8::7]"].identity) == (
        "2001:db8::7",
        tmp_path / "keys" / "v6",
    )


def test_a_nearer_spec_outweighs_one_above_it(tmp_path: Path) -> None:
    found = named(tmp_path, FLEET)
    assert dict(found["gpu04.example"].layer) == {
        "driver": "580", "kubernetes.mode": "dra", "runtime": "docker,containerd", "toolkit": "none"
    }  # fmt: skip
    assert dict(found["lab02"].layer) == {"driver": "570", "toolkit": "none"}
    assert dict(found["lab01"].layer) == {"driver": "595", "toolkit": "none"}
    assert found["login01"].layer == ()


def test_a_group_may_name_a_file_next_to_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "h100.yaml").write_text("driver: 580\nexpect: {gpus: 8}\n")
    found = named(tmp_path, "groups:\n  h100: {hosts: gpu01, spec: specs/h100.yaml}\n")
    assert dict(found["gpu01"].layer) == {"driver": "580", "expect.gpus": "8"}


@pytest.mark.parametrize("file", [None, "driver: 5x\n", "- a\n", "severity: {drv.loaded: error}\n"])
def test_a_spec_file_that_is_none_is_a_fault(tmp_path: Path, file: str | None) -> None:
    if file:
        (tmp_path / "s.yaml").write_text(file)
    said = refused(tmp_path, "groups:\n  h100: {hosts: gpu01, spec: s.yaml}\n")
    assert "line 2: group h100: spec: " in said
    assert str(tmp_path / "s.yaml") in said


A_AND_B = "groups:\n  a: {{hosts: x, {0}}}\n  b: {{hosts: 'x,y', {1}}}\n"


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("spec: {driver: 580}", "spec: {driver: 595}", "x: driver is '580' by group a and '595' by group b"),
        (
            "spec: {expect: {gpus: 8}}",
            "spec: {expect: {gpus: 4}}",
            "x: expect.gpus is '8' by group a and '4'",
        ),
        ("user: ann", "user: bob", "x: user is 'ann' by group a and 'bob' by group b"),
        ("jump: one", "jump: none", "x: jump is 'one' by group a and 'none' by group b"),
    ],
)
def test_two_groups_of_a_host_that_contradict_are_named(tmp_path: Path, one: str, other: str, said: str) -> None:
    assert said in refused(tmp_path, A_AND_B.format(one, other))
    assert list(named(tmp_path, A_AND_B.format(one, other), "y")) == ["y"], "who is in one of them is not concerned"
    assert list(named(tmp_path, A_AND_B.format(one, one))) == ["x", "y"], "nor is it where both say the same"


def test_contradictions_are_said_once_for_all_hosts_that_have_them(tmp_path: Path) -> None:
    text = "groups:\n  a: {hosts: 'x[01-50]', user: u}\n  b: {hosts: 'x[01-50]', user: v}\n"
    said = refused(tmp_path, text)
    assert said.count("by group a") == 1
    assert "x[01-50]: user is 'u' by group a and 'v' by group b" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts:\n  x: {port: 22}\ngroups:\n  g:\n    hosts:\n      x: {port: 23}\n", "line 6: x: port is '23', and"),
        ("hosts: {x: {spec: {driver: 580}}}\ngroups: {g: {hosts: {x: {spec: {driver: 595}}}}}\n", "driver of its spec"),
        ("hosts:\n  x[1-2]: {address: a}\n", "x[1-2]: one address is not for several hosts"),
        ("address: a\nhosts: x\n", "line 1: address is for one host"),
        ("hosts: x\nuser:\n", "user has no value"),
        ("hosts: x\njump: -x\n", "jump: '-x' is not a host"),
        ("hosts: x\nuser: 'a b'\n", "user: 'a b' is not a user"),
        ("hosts: x\nuser: \"a\\u202eb\"\n", "is not a user"),
        ("hosts: x\nidentity: ''\n", "identity: '' is not a path"),
        ("hosts: x\nidentity: ~nosuchuser/k\n", "is in the home of nobody"),
        ("hosts: x\nspec: ~nosuchuser/k\n", "spec: '~nosuchuser/k' is in the home of nobody"),
        ("hosts: x\nspec: \"a\\0b\"\n", "is not a path"),
        ("hosts: x\npassword: hunter\n", "'password' is not a key here"),
        ("hosts: x\nspec: {driver: 5x}\n", "spec: line 2: driver: '5x' is not a driver"),
        ("hosts: x\nspec: {drivr: 580}\n", "drivr is not a key of a spec; did you mean driver?"),
        ("hosts: x\nspec: {profile: hgx}\n", "profile is for all hosts of a run, and stands in --spec"),
        ("hosts: x\nspec: {site_checks: /x}\n", "site_checks is for all hosts of a run"),
        ("hosts: x\nspec: [a]\n", "spec: a spec is a mapping, or the name of a file"),
        ("hosts: [[x]]\n", "hosts is a list of names"),
        ("hosts: {x: 5}\n", "x: settings are a mapping"),
        ("hosts: x\ngroups: [a]\n", "groups: a mapping is wanted here"),
        ("hosts: x\ngroups: {g: [a]}\n", "group g: a mapping is wanted here"),
        ("hosts: x\ngroups: {all: {hosts: y}}\n", "all is not a name of a group here"),
        ("hosts: x\ngroups: {'a b': {hosts: y}}\n", "'a b' is not a name of a group"),
        ("groups: {a: {children: b}, b: {children: c}, c: {children: a, hosts: x}}\n", "each other's children: "),
        ("groups: {a: {children: a, hosts: x}}\n", "each other's children: a → a"),
        ("hosts: x,,y\n", "an empty host name"),
        ("hosts: 'gpu[3-1]'\n", "[3-1] goes backwards"),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_groups_in_each_other_have_a_limit(tmp_path: Path) -> None:
    def nested(count: int) -> str:
        links = "".join(f"  g{n}: {{children: g{n + 1}}}\n" for n in range(count - 1))
        return f"groups:\n{links}  g{count - 1}: {{hosts: x}}\n"

    assert list(named(tmp_path, nested(32), "g0")) == ["x"]
    assert "group g0 has more than 32 groups in each other" in refused(tmp_path, nested(33))


def test_a_thousand_groups_are_read_and_no_more(tmp_path: Path) -> None:
    def many(count: int) -> str:
        return "groups:\n" + "".join(f"  g{n}: {{hosts: x{n}}}\n" for n in range(count))

    assert len(named(tmp_path, many(999))) == 999, "and one for all"
    assert "or 1000 groups" in refused(tmp_path, many(1001))


def test_names_after_their_ranges_are_counted(tmp_path: Path) -> None:
    text = "groups:\n" + "".join(f"  g{n}: {{hosts: 'x[1-9999]'}}\n" for n in range(11))
    assert "100000 names of hosts" in refused(tmp_path, text)


def test_a_password_that_stands_as_a_key_is_not_quoted(tmp_path: Path) -> None:
    assert "hunter2" not in refused(tmp_path, "hosts: x\npassword: hunter2\n")


def test_hosts_are_named_by_the_inventory_and_not_by_where_they_are(tmp_path: Path) -> None:
    (one,) = named(tmp_path, "hosts: {gpu01: {address: 10.0.0.1, port: 2222, user: root}}\n").values()
    assert (str(one.target), one.target.host) == ("gpu01", "10.0.0.1")


def test_groups_below_groups_have_their_hosts(tmp_path: Path) -> None:
    tree = read(tmp_path, FLEET)
    assert tree.below("lab") == {"lab01", "lab02", "lab03", "gpu01.example", "gpu02.example", "gpu04.example"}
    assert tree.below("ungrouped") == {"gpu03.example", "login01", "[2001:db8::7]"}
