"""Who goes with whom: a canary first, then batches."""

from __future__ import annotations

from collections.abc import Iterator


def wave_sizes(hosts: int, canary: int, batch: int) -> tuple[int, ...]:
    """(2, 10, 10, 3): the hosts of each wave, together `hosts`. `canary`: 0 for none; `batch`: at least 1."""
    return tuple(_sizes(hosts, canary, batch))


def _sizes(left: int, canary: int, batch: int) -> Iterator[int]:
    if canary and left:
        yield min(canary, left)
        left -= min(canary, left)
    while left:
        yield min(batch, left)
        left -= min(batch, left)


def wave_numbers(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """(2, 3) -> (0, 0, 1, 1, 1): the wave of each host, in order."""
    return tuple(number for number, size in enumerate(sizes) for _ in range(size))
