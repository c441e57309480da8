"""Whether what some work costs grows as its input does, in time of the processor.

Eight times the input may cost 24 times as much: 8 is linear, 64 is quadratic, and noise lies in between. scripts/double
doubles each input instead, from 8 KiB up to 4 MiB, and each doubling may cost 2.6 times as much; it prints a line for
every row. A row ends before 4 MiB where one run takes longer than GPUNODE_LONG_S seconds (20), which the line tells.

What the kernel does to give memory and take it back counts as the processor's time too. From the size on at which an
allocator gives back what it got, a letter costs up to four times what it cost below, and as much at every size above.
So scripts/double has the allocator keep what it has, and no doubling is let off for such a step.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from gpunode.errors import GpunodeError

LONG = os.environ.get("GPUNODE_LONG") == "1"
LONG_S = float(os.environ.get("GPUNODE_LONG_S", "20"))
SHORT = 8 << 10
TIMES, MOST = 8, 24.0
SMALLEST, LARGEST, MOST_DOUBLED = 8 << 10, 4 << 20, 2.6
# What scripts/double sets: everything from malloc, which gives nothing back.
KEPT = ("PYTHONMALLOC", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
LEAST_S = 0.001  # what is shorter counts as this long
TRIES, TRIES_S = 3, 0.1  # in one look at a cost; what takes long is not tried again
LOOKS, LONG_LOOKS = 3, 10  # before it is said to be too much

T = TypeVar("T")


class Cost(Generic[T]):
    """The least that one input costs in any look at it: whatever else the machine does only adds."""

    def __init__(self, work: Callable[[T], object], given: T, tries: int = TRIES) -> None:
        self._work, self._given = work, given
        self.least_s = float("inf")
        self.refusal = ""
        self.look(tries)

    def look(self, tries: int = TRIES) -> None:
        """Without the garbage collector, whose work depends on all else that there is."""
        gc.disable()
        try:
            begun = time.process_time()
            for _ in range(tries):
                self.least_s = min(self.least_s, self._once())
                if time.process_time() - begun > TRIES_S:
                    break
        finally:
            gc.enable()

    def _once(self) -> float:
        begun = time.process_time()
        try:
            self._work(self._given)
        except (GpunodeError, ValueError) as refused:  # that has to be found as fast
            self.refusal = " ".join(str(refused).split())[:60] or type(refused).__name__
        return time.process_time() - begun


def assert_linear(work: Callable[[T], object], made: Callable[[int], T], short: int = SHORT) -> None:
    """`made` gives an input of about so many characters; `short` is the smaller of the two, unless GPUNODE_LONG=1."""
    if LONG:
        _assert_each_doubling(work, made)
        return
    # What the larger costs in one try is enough where it is little: the least of more tries is no more.
    small, large = Cost(work, made(short)), Cost(work, made(short * TIMES), tries=1)
    ratio = _ratio(small, large, MOST, LOOKS + 1)
    assert ratio <= MOST, f"{short}: {small.least_s:.4f} s, {short * TIMES}: {large.least_s:.4f} s"


def _ratio(small: Cost[T], large: Cost[T], most: float, looks: int) -> float:
    """What the larger costs, in times the smaller; measured again as long as that is too much."""
    for _ in range(looks - 1):
        if large.least_s <= most * max(small.least_s, LEAST_S):
            break
        small.look()
        large.look()
    return large.least_s / max(small.least_s, LEAST_S)


def _assert_each_doubling(work: Callable[[T], object], made: Callable[[int], T]) -> None:
    assert all(name in os.environ for name in KEPT), "scripts/double sets what this needs"
    size, worst, remarks = SMALLEST, (0.0, SMALLEST), []
    half = Cost(work, made(size))
    while half.least_s <= LONG_S and size < LARGEST:
        size *= 2
        whole = Cost(work, made(size))
        ratio = _ratio(half, whole, MOST_DOUBLED, LONG_LOOKS)
        assert ratio <= MOST_DOUBLED, f"{size // 2}: {half.least_s:.4f} s, {size}: {whole.least_s:.4f} s"
        worst = max(worst, (ratio, size))
        if whole.refusal and not half.refusal:
            remarks.append(f"refused from {size} on: {whole.refusal}")
        half = whole
    if size < LARGEST:
        remarks.append(f"ended at {size}, which takes {half.least_s:.1f} s")
    row = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].removesuffix(" (call)")
    print(f"\n{row}: {worst[0]:.2f} at {worst[1]}; {size}: {half.least_s:.4f} s; {'; '.join(remarks)}")
