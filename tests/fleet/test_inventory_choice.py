"""--limit, --exclude and --shard."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.errors import UsageError
from gpunode.fleet.inventory import parse_ssh_targets
from gpunode.fleet.inventory.choice import Shard, chosen
from gpunode.fleet.inventory.tree import Tree, of_targets
from tests.fleet.inventories import read

FLEET = """\
hosts: gpu[01-04].b, login
groups:
  h100: {hosts: 'gpu[01-02].b'}
  rack1: {children: [h100], hosts: gpu03.b}
  login: {hosts: login}
  gpu03.b: {hosts: gpu04.b}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Tree:
    return read(tmp_path, FLEET)


@pytest.mark.parametrize(
    ("limit", "exclude", "want"),
    [
        ([], [], "gpu01.b gpu02.b gpu03.b gpu04.b login"),
        (["h100"], [], "gpu01.b gpu02.b"),
        (["rack1"], [], "gpu01.b gpu02.b gpu03.b"),
        (["rack1"], ["h100"], "gpu03.b"),
        (["gpu[02-03].b,login"], [], "gpu02.b gpu03.b login"),
        (["login", "gpu01.b"], [], "gpu01.b login"),
        (["gpu*"], ["gpu0?.b,h100", "nothing*,login"], None),
        (["gpu*"], ["gpu0[3-4].*"], "gpu01.b gpu02.b"),
        (["rack?"], [], "gpu01.b gpu02.b gpu03.b"),
        (["all"], ["rack1"], "gpu04.b login"),
        (["ungrouped"], [], None),
        ([], ["ungrouped"], "gpu01.b gpu02.b gpu03.b gpu04.b login"),
    ],
)
def test_hosts_are_chosen_in_the_order_of_the_inventory(
    fleet: Tree, limit: list[str], exclude: list[str], want: str | None
) -> None:
    if want is None:
        with pytest.raises(UsageError):
            chosen(fleet, limit, exclude, None)
        return
    assert " ".join(chosen(fleet, limit, exclude, None)) == want


@pytest.mark.parametrize(
    ("limit", "exclude", "said"),
    [
        (["h10"], [], "--limit: h10 is not there (did you mean h100?)"),
        ([], ["rak1,gpu01.b"], "--exclude: rak1 is not there (did you mean rack1?)"),
        (["gpu[01-09].b"], [], "gpu05.b, gpu06.b, gpu07.b, gpu08.b and 1 more are not there"),
        (["cpu*", "x?"], [], "'cpu*' matches no host and no group"),
        (["gpu03.b"], [], "gpu03.b is a group and a host"),
        (["gpu[3-1].b"], [], "goes backwards"),
        (["h100,"], [], "an empty host name"),
        ([], ["all"], "--exclude leaves no host"),
        (["h100"], ["rack1"], "--limit and --exclude leave no host"),
    ],
)
def test_what_matches_nothing_is_an_error(fleet: Tree, limit: list[str], exclude: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(fleet, limit, exclude, None)
    assert said in caught.value.problem


def test_a_group_of_one_host_that_is_called_alike_is_no_trouble(fleet: Tree) -> None:
    assert chosen(fleet, ["login"], [], None) == ("login",)


def test_words_of_ssh_are_chosen_by_their_host_too() -> None:
    tree = of_targets("--ssh", parse_ssh_targets(["root@gpu[01-03]:22,[::1]:22"]))
    assert chosen(tree, ["gpu01", "root@gpu02:22"], [], None) == ("root@gpu01:22", "root@gpu02:22")
    assert chosen(tree, [], ["gpu*"], None) == ("[::1]:22",)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 1000])
def test_shards_are_disjoint_and_complete(count: int) -> None:
    tree = of_targets("--ssh", parse_ssh_targets(["gpu[001-500].example"]))
    parts = [chosen(tree, [], [], Shard(number, count)) for number in range(1, count + 1)]
    assert sorted(name for part in parts for name in part) == sorted(tree.hosts)


def test_two_lists_that_differ_in_users_and_ports_have_the_same_parts() -> None:
    names = [f"gpu{number:03}" for number in range(1, 101)]
    plain = of_targets("--ssh", parse_ssh_targets(names))
    others = of_targets("--ssh", parse_ssh_targets([f"root@{name}:22" for name in names]))
    for number in (1, 2, 3):
        part = chosen(plain, [], [], Shard(number, 3))
        assert tuple(f"root@{name}:22" for name in part) == chosen(others, [], [], Shard(number, 3))


@pytest.mark.parametrize("text", ["hosts: ['{}']\n", "all: {{hosts: {{'{}': }}}}\n", "[gpu]\n{}\n"])
def test_an_ipv6_host_is_in_the_same_part_of_a_list_and_of_an_inventory(tmp_path: Path, text: str) -> None:
    of_list = of_targets("--ssh", parse_ssh_targets(["[2001:db8::1]"]))
    parts = [number for number in range(1, 9) if chosen(of_list, [], [], Shard(number, 8))]
    for word in ("2001:db8::1", "[2001:db8::1]:22"):
        tree = read(tmp_path, text.format(word))
        assert [number for number in range(1, 9) if chosen(tree, [], [], Shard(number, 8))] == parts == [6]
        assert chosen(tree, ["2001:db8::1"], [], None) == ("[2001:db8::1]",)


def test_a_host_stays_in_its_shard_whoever_else_is_there() -> None:
    whole = of_targets("--ssh", parse_ssh_targets(["gpu[001-500]"]))
    fewer = of_targets("--ssh", parse_ssh_targets(["gpu[100-300],other"]))
    for number in range(1, 9):
        part = set(chosen(whole, [], [], Shard(number, 8)))
        assert set(chosen(fewer, [], ["other"], Shard(number, 8))) == part & set(fewer.hosts)
        assert 40 < len(part) < 85


def test_which_shard_a_host_is_in_does_not_change_with_a_release() -> None:
    names = [f"gpu{n:02}" for n in range(1, 9)]
    assert [next(n for n in range(1, 4) if Shard(n, 3).has(name)) for name in names] == [2, 2, 2, 2, 2, 1, 2, 1]


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "3/", "/8", "a/b", "1/0", "-1/8", "1/20000", "1/8/2", "³/8"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a part of a whole"):
        Shard.parse(text)
