"""Who goes with whom, and how many may fail and reboot: by every small fleet and every policy of it."""

from __future__ import annotations

import itertools

import pytest

from gpunode.errors import UsageError
from gpunode.fleet.rollout.policy import NO_LIMIT, Policy, Share, limits
from gpunode.fleet.rollout.waves import wave_numbers, wave_sizes

SHARES = (
    None,
    Share(1),
    Share(3),
    Share(40),
    Share(1, percent=True),
    Share(25, percent=True),
    Share(100, percent=True),
)
TABLE = tuple(itertools.product(range(24), (0, 1, 2, 30), (None, *SHARES[1:]), SHARES))


def test_every_host_is_in_one_wave_and_no_wave_is_larger_than_asked_for() -> None:
    for hosts, canary, batch in itertools.product(range(40), range(6), range(1, 9)):
        sizes = wave_sizes(hosts, canary, batch)
        assert sum(sizes) == hosts
        assert all(sizes), "no wave is empty: the one behind it would wait for nobody"
        first = sizes[:1] if canary else ()
        assert all(size <= canary for size in first)
        assert all(size == batch for size in sizes[len(first) : -1])
        assert sorted(wave_numbers(sizes)) == list(wave_numbers(sizes))
        assert len(wave_numbers(sizes)) == hosts


def test_never_all_hosts_of_a_fleet_reboot_at_once_and_always_one_may() -> None:
    for hosts, canary, batch, reboots in TABLE:
        most = limits(Policy(canary, batch, max_reboots=reboots), hosts).max_reboots
        assert most >= 1
        assert most < hosts or hosts < 2


@pytest.mark.parametrize(
    ("policy", "hosts", "reboots"),
    [
        (Policy(), 50, 5),
        (Policy(batch=Share(20)), 500, 2),
        (Policy(batch=Share(5)), 500, 1),
        (Policy(canary=50, batch=Share(10)), 500, 1),
        (Policy(), 2, 1),
        (Policy(max_reboots=Share(100, percent=True)), 8, 7),
        (Policy(max_reboots=Share(40)), 8, 7),
        (Policy(max_reboots=Share(1, percent=True)), 8, 1),
    ],
    ids=[
        "a tenth",
        "of a batch",
        "at least one",
        "not of the canary",
        "of two one",
        "never all",
        "nor by number",
        "rounded to one",
    ],
)
def test_how_many_reboot_at_once(policy: Policy, hosts: int, reboots: int) -> None:
    assert limits(policy, hosts).max_reboots == reboots


@pytest.mark.parametrize(
    ("policy", "hosts", "failures"),
    [
        (Policy(), 50, None),
        (Policy(canary=1), 50, 5),
        (Policy(batch=Share(4)), 9, 0),
        (Policy(max_failures=Share(0)), 9, 0),
        (Policy(max_failures=Share(50, percent=True)), 9, 4),
        (Policy(canary=1, max_failures=NO_LIMIT), 9, None),
    ],
    ids=["no stages, no limit", "a tenth", "of nine none", "asked for", "rounded down", "none wanted"],
)
def test_how_many_may_fail(policy: Policy, hosts: int, failures: int | None) -> None:
    assert limits(policy, hosts).max_failures == failures


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "101%", "0%", "%", "ten", "1 0", "³", "1" * 7, "100001", "3\n"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--batch"):
        Share.parse("--batch", text, least=1)


def test_a_share_of_hosts() -> None:
    assert (Share.parse("--batch", "7", least=1).of(3), Share.parse("--batch", "34%", least=1).of(3)) == (7, 1)
