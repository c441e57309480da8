"""The failed hosts as one argument: what --ssh reads back is these hosts and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpunode.errors import ExitCode
from gpunode.fleet.inventory import parse_ssh_targets
from gpunode.model.report import HostOutcome
from gpunode.remedy import gpunode
from gpunode.render.failed_hosts import failed_lines, hosts_argument
from gpunode.render.remedy_text import hosts_are_named_by
from gpunode.transport.ssh_config import parse_target


@pytest.fixture(autouse=True)
def by_ssh() -> Iterator[None]:
    """Whatever a command line before named its hosts by."""
    hosts_are_named_by("")
    yield
    hosts_are_named_by("")


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (["gpu03", "gpu07", "gpu08", "gpu09"], "gpu[03,07-09]"),
        (["gpu9", "gpu10", "gpu11"], "gpu[9-11]"),
        (["gpu09", "gpu9"], "gpu[9,09]"),
        (["gpu099", "gpu100"], "gpu[099-100]"),
        (["gpu07"], "gpu07"),
        (["root@gpu1.example:2222", "root@gpu2.example:2222"], "root@gpu[1-2].example:2222"),
        (["n1-gpu1", "n1-gpu2", "n2-gpu1"], "n1-gpu[1-2],n2-gpu1"),
        (["10.0.0.9", "10.0.0.10"], "10.0.0.[9-10]"),
        (["[fe80::1]:22", "[fe80::2]:22"], "[fe80::1]:22,[fe80::2]:22"),
        (["db", "gpu1", "gpu1"], "db,gpu1"),
        ([], ""),
    ],
)
def test_hosts_argument(names: list[str], word: str) -> None:
    assert hosts_argument(names) == word
    assert not names or {str(one) for one in parse_ssh_targets([word])} == set(names)


HOSTS = st.from_regex(r"([a-z]{0,3}[0-9]{0,2}@)?[a-c][0-9]{0,3}(-[0-9]{1,3})?(\.[a-z])?(:[1-9][0-9]?)?", fullmatch=True)


@given(st.lists(HOSTS, min_size=1, max_size=30))
def test_read_back_it_is_the_same_hosts(names: list[str]) -> None:
    right = [name for name in names if not name.startswith("@")]
    for name in right:
        parse_target(name)
    if right:
        assert {str(one) for one in parse_ssh_targets([hosts_argument(right)])} == set(right)


def outcomes(*codes: ExitCode) -> list[HostOutcome]:
    return [HostOutcome(f"gpu{place:02}", code) for place, code in enumerate(codes, 1)]


def test_what_is_pasted_is_quoted_for_a_shell() -> None:
    evil = [HostOutcome("$(x)@a", ExitCode.FAILED), HostOutcome("b", ExitCode.DONE)]
    assert failed_lines(evil) == ["not done  --ssh '$(x)@a'"]


def test_the_lines_stand_below_a_fleet_that_did_not_end_well() -> None:
    retry = gpunode("setup", "--retry-failed", "ID", ssh=False)
    mixed = outcomes(ExitCode.DONE, ExitCode.REBOOT_NEEDED, ExitCode.FAILED)
    assert failed_lines(mixed, retry=retry) == [
        "not done  --ssh 'gpu[02-03]'",
        "again     gpunode setup --retry-failed ID",
    ]
    assert failed_lines(outcomes(ExitCode.DONE, ExitCode.DONE), retry=retry) == []
    assert failed_lines(outcomes(ExitCode.FAILED), retry=retry) == [], "one host is what was typed"


def test_hosts_of_an_inventory_are_named_by_it() -> None:
    hosts_are_named_by("my fleet.yaml")
    lines = failed_lines(outcomes(ExitCode.DONE, ExitCode.FAILED, ExitCode.FAILED))
    assert lines == ["not done  --inventory 'my fleet.yaml' --limit 'gpu[02-03]'"]


def test_nobody_pastes_ten_thousand_names_without_a_range() -> None:
    many = [HostOutcome(f"{'x' * 20}{place}y{place}", ExitCode.FAILED) for place in range(1000)]
    assert failed_lines(many) == []
