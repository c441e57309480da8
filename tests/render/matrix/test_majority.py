"""What most have: the most frequent value, no value of a tie, and nothing of what is not known."""

from __future__ import annotations

import pytest

from gpunode.render.matrix.majority import UNKNOWN, Most, by_group, most


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([3, 3, 5], Most(3, 2, 3)),
        ([1, 2, 2, 3, 4], Most(2, 2, 5)),
        ([1, 2], Most(UNKNOWN, 1, 2)),
        ([1, 1, 2, 2, 3], Most(UNKNOWN, 2, 5)),
        ([UNKNOWN, UNKNOWN, UNKNOWN, 4], Most(4, 1, 1)),
        ([UNKNOWN, UNKNOWN], Most(UNKNOWN, 0, 0)),
        ([], Most(UNKNOWN, 0, 0)),
    ],
    ids=[
        "two of three",
        "the most frequent, though not half",
        "one each is no majority",
        "a tie at the top is none",
        "what is not known is outvoted by one that is",
        "nothing is known",
        "nobody is there",
    ],
)
def test_most(values: list[int], want: Most) -> None:
    assert most(values) == want


def test_groups_are_counted_apart_and_a_host_in_none_counts_in_none() -> None:
    groups = [0, 1, 0, UNKNOWN, 1, 0]
    rows = [[7, 1], [8, 1], [7, 2], [9, 9], [8, 2], [6, 2]]
    assert by_group(groups, rows) == [[Most(7, 2, 3), Most(2, 2, 3)], [Most(8, 2, 2), Most(UNKNOWN, 1, 2)]]
